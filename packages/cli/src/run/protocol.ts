/** The messages between the holder (`solehold run`) and its supervisor: JSON over a pipe of their own. */
import type { Deadline } from "./deadline.ts";
import type { StopCause } from "./deadline-enforcer.ts";
import type { StopPlan } from "./plan.ts";

export interface StartMessage {
  readonly kind: "start";
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly plan: StopPlan;
  readonly deadline: Deadline;
}

export type HolderMessage =
  | StartMessage
  | { readonly kind: "extend"; readonly deadline: Deadline }
  /** The store has ended the lease. */
  | { readonly kind: "stop"; readonly urgency: "grace" | "now" }
  /** A signal that the user sent, for the whole group. */
  | { readonly kind: "signal"; readonly signal: NodeJS.Signals };

export interface CommandEnd {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Null when it ended by itself. */
  readonly stoppedBecause: StopCause | null;
  /** "alive" when processes of the group withstood SIGKILL: the lease must not be released then. */
  readonly survivors: "none" | "alive";
}

export type SupervisorMessage =
  /** It listens. Nothing is sent to it before: Node may take longer to start than a short lease lasts. */
  | { readonly kind: "ready" }
  | { readonly kind: "started"; readonly groupId: number }
  /** `code` as Node names it: ENOENT, EACCES; LATE when the deadline had come too near to begin. */
  | { readonly kind: "not-started"; readonly code: string; readonly message: string }
  | { readonly kind: "stopping"; readonly cause: StopCause }
  /** The command runs under another user and cannot be signalled. */
  | { readonly kind: "signal-denied"; readonly signal: NodeJS.Signals }
  | ({ readonly kind: "ended" } & CommandEnd);
