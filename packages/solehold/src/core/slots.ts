/**
 * Slots: a name that at most N may hold at a time is N leases, each with its own fence. Slot 0 has the name itself, so
 * that whoever asks for the name without slots takes one of them; the others are `<name>#slot/1`, `<name>#slot/2`, ...
 * Those names can be read, revoked and broken, but not acquired by themselves.
 */
import type { FieldProblem } from "./field-problem.ts";
import { describeNumber } from "./identifiers.ts";
import { type LeaseKey, MAX_NAME_LENGTH } from "./key.ts";

export const MAX_SLOTS = 256;
const MARK = "#slot/";
const SLOT_NAME = /^(.+)#slot\/([1-9]\d{0,2})$/s;

export function slotKey(key: LeaseKey, slot: number): LeaseKey {
  return slot === 0 ? key : { tenant: key.tenant, name: `${key.name}${MARK}${slot}` };
}

/** The keys of all slots, the first one first. */
export function slotKeys(key: LeaseKey, slots: number): readonly LeaseKey[] {
  return Array.from({ length: slots }, (_, slot) => slotKey(key, slot));
}

/** Which slot a name stands for, and of what. A name that was not made here is slot 0 of itself. */
export function slotIn(name: string): { readonly name: string; readonly slot: number } {
  const [, base, digits] = (name.includes(MARK) && SLOT_NAME.exec(name)) || [];
  const slot = Number(digits);
  return base === undefined || slot >= MAX_SLOTS ? { name, slot: 0 } : { name: base, slot };
}

/** The key that is waited for and asked for; its own for all but the slots behind the first. */
export function askedKey(key: LeaseKey): LeaseKey {
  if (!key.name.includes(MARK)) return key;
  const { name, slot } = slotIn(key.name);
  return slot === 0 ? key : { tenant: key.tenant, name };
}

/** What is wrong with an acquire of this name with so many slots; null when nothing is. */
export function slotsProblem(name: unknown, slots: unknown): FieldProblem | null {
  if (typeof name === "string" && name.includes(MARK)) {
    const { name: base, slot } = slotIn(name);
    const message = `is slot ${slot} of '${base}': acquire '${base}' and say how many slots it has`;
    if (slot > 0) return { field: "name", message };
  }
  if (slots === undefined) return null;
  if (typeof slots !== "number" || !Number.isInteger(slots) || slots < 1 || slots > MAX_SLOTS)
    return {
      field: "slots",
      message: `must be a whole number from 1 to ${MAX_SLOTS}, got ${describeNumber(slots)}`,
    };
  const longest = MAX_NAME_LENGTH - `${MARK}${slots - 1}`.length;
  if (slots > 1 && typeof name === "string" && name.length > longest)
    return { field: "name", message: `must have at most ${longest} characters where it has ${slots} slots` };
  return null;
}
