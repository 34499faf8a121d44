/** Checks of what is handed in from outside: nothing is known of it, not even its shape. */
import { MAX_INSTANT_MS } from "./instant.ts";

/** A field that makes a request impossible to decide, and how to correct it. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

export type Untrusted = { readonly [field: string]: unknown };

export function isObject(value: unknown): value is Untrusted {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `message` says what is wrong with the field; null where nothing is. */
export function problemOf(field: string, message: string | null): FieldProblem | null {
  return message === null ? null : { field, message };
}

export function isInstant(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= MAX_INSTANT_MS;
}
