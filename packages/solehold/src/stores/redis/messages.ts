/** What the scripts publish: tenant/name, a line break, and the new value, which is empty after a delete. */
import type { StoreEvent } from "../../store/index.ts";
import { keyOfMember, storedFrom } from "./layout.ts";

/** Null for what is no such message. */
export function eventOf(message: string): Extract<StoreEvent, { kind: "changed" }> | null {
  const lineEnd = message.indexOf("\n");
  const key = lineEnd < 0 ? null : keyOfMember(message.slice(0, lineEnd));
  if (key === null) return null;
  const value = message.slice(lineEnd + 1);
  const stored = storedFrom(key, value === "" ? null : value);
  // What arrived damaged says nothing about what is stored.
  return { kind: "changed", key, stored: stored.kind === "corrupt" ? null : stored };
}
