/** Option values as the library wants them. A wrong one is a usage failure that names the option. */

import { type Purpose, parseFence } from "solehold";
import { durationMs, fenceGeneration, isPurpose } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { usageFailure } from "../failure.ts";

const DIGITS = /^\d+$/;

/** Null when the option was not given. A bare number is milliseconds. */
export function durationOption({ values }: Invocation, name: string, minMs: number): number | null {
  const text = values[name];
  if (text === undefined) return null;
  try {
    return durationMs(`--${name}`, DIGITS.test(text) ? Number(text) : text, minMs);
  } catch (error) {
    throw usageFailure((error as Error).message);
  }
}

export function requiredDuration(invocation: Invocation, name: string, minMs: number): number {
  const ms = durationOption(invocation, name, minMs);
  if (ms === null) throw usageFailure(`--${name} is missing: give a duration such as --${name} 30s`);
  return ms;
}

const DEFAULT_WAIT_MS = 10_000;

export function waitOption(invocation: Invocation): number | "forever" {
  if (invocation.values.wait === "forever") return "forever";
  return durationOption(invocation, "wait", 0) ?? DEFAULT_WAIT_MS;
}

/** How many may hold it, who goes first, and for how long others are kept out after the grant and after its expiry. */
export function sharing(invocation: Invocation): {
  readonly slots: number | null;
  readonly priority: number | null;
  readonly holdAtLeast: number | null;
  readonly lockDelay: number | null;
} {
  return {
    slots: wholeOption(invocation, "slots"),
    priority: wholeOption(invocation, "priority", 0),
    holdAtLeast: durationOption(invocation, "at-least", 0),
    lockDelay: durationOption(invocation, "lock-delay", 0),
  };
}

export function purposeOption({ values }: Invocation): Purpose | null {
  return isPurpose(values.purpose) ? values.purpose : null;
}

export function requiredOption({ values }: Invocation, name: string, fix: string): string {
  const value = values[name];
  if (value === undefined || value === "") throw usageFailure(`--${name} is missing: ${fix}`);
  return value;
}

/** The generation inside --fence: what the library uses to tell one grant from another. */
export function fenceOption({ values: { fence } }: Invocation): bigint | null {
  if (fence === undefined) return null;
  const parsed = parseFence(fence);
  if (parsed === null)
    throw usageFailure(`--fence must be a decimal number as 'get' shows it, got ${JSON.stringify(fence)}`);
  return fenceGeneration(parsed);
}

/** A whole number of at most 64 bits: a term or a generation. */
export function unsignedOption({ values }: Invocation, name: string): bigint | null {
  const text = values[name];
  if (text === undefined) return null;
  if (!DIGITS.test(text) || BigInt(text) >= 2n ** 64n) {
    throw usageFailure(`--${name} must be a whole number from 0 to 2^64-1, got ${JSON.stringify(text)}`);
  }
  return BigInt(text);
}

export function tokenOption({ values, io }: Invocation): string {
  const token = values.token ?? io.env.SOLEHOLD_TOKEN;
  if (token === undefined || token === "") {
    throw usageFailure("--token is missing: pass what acquire printed, or set SOLEHOLD_TOKEN");
  }
  return token;
}

/** Null when the option was not given. */
export function wholeOption({ values }: Pick<Invocation, "values">, name: string, min = 1): number | null {
  const text = values[name];
  if (text === undefined) return null;
  const parsed = DIGITS.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(parsed) || parsed < min)
    throw usageFailure(`--${name} must be a whole number from ${min}, got ${JSON.stringify(text)}`);
  return parsed;
}
