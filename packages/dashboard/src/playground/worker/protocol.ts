/** What the page asks its worker, and what it answers. */
import type { ExploreResult, ExploreWorldName, Trace } from "@solehold/simulator";
import type { Played } from "./play.ts";

export type Question =
  | { readonly kind: "play"; readonly world: Played; readonly title: string; readonly bug: string | null }
  /** Visits every state of the small world that shows this bug; `code` says with the bug or without. */
  | { readonly kind: "explore"; readonly bug: string; readonly code: "shipped" | "broken" };

export interface Explored extends ExploreResult {
  readonly world: ExploreWorldName;
}

export type Answer =
  | { readonly kind: "play"; readonly trace: Trace }
  | { readonly kind: "explore"; readonly explored: Explored };

export interface Envelope<Content> {
  readonly id: number;
  readonly content: Content;
}

export type Reply = Envelope<Answer | { readonly kind: "failed"; readonly message: string }>;
