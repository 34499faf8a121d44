/**
 * Who may approve, and how many must. A `Quorum` can only be made by `Quorum.define`, which checks the whole
 * configuration and lists every problem in it, so a quorum that exists can be met and cannot be cheated:
 * thresholds grow with the tier, never exceed the signers, and no key counts for two signers.
 */
import type { KeyObject } from "node:crypto";
import { type FieldProblem, isInstant, isObject } from "../core/field-problem.ts";
import { MAX_INSTANT_MS } from "../core/index.ts";
import { compareUtf8, idProblem, shown } from "../placement/names.ts";
import { importPublicKey, publicKeyTextProblem } from "./signing-key.ts";

export const SAFETY_TIERS = ["Standard", "Risky", "Dangerous"] as const;
export type SafetyTier = (typeof SAFETY_TIERS)[number];

export const MAX_SIGNERS = 256;
export const MAX_KEYS_PER_SIGNER = 8;
export const DEFAULT_THRESHOLDS: QuorumThresholds = Object.freeze({ standard: 1, risky: 2, dangerous: 3 });

/** How many distinct signers a tier needs. A configured 0 counts as 1: no tier goes unsigned by accident. */
export interface QuorumThresholds {
  readonly standard: number;
  readonly risky: number;
  readonly dangerous: number;
}

/** A key in force from `notBeforeMs` to just before `notAfterMs`; an absent bound is no bound. */
export interface SignerKeyConfig {
  /** 43 characters of base64url. */
  readonly publicKey: string;
  readonly notBeforeMs?: number;
  readonly notAfterMs?: number;
}

/** Several keys with windows that overlap are how a signer changes keys without a gap. */
export interface SignerConfig {
  readonly signerId: string;
  readonly keys: readonly SignerKeyConfig[];
}

export interface QuorumConfig {
  readonly signers: readonly SignerConfig[];
  readonly thresholds?: QuorumThresholds;
  /** "strict" (default): any failure fails the quorum. "lenient": failures are reported, enough signers pass. */
  readonly mode?: QuorumMode;
}

export type QuorumMode = "strict" | "lenient";

export interface SignerKey {
  readonly key: KeyObject;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

export type QuorumDefinition =
  | { readonly ok: true; readonly quorum: Quorum }
  | { readonly ok: false; readonly problems: readonly FieldProblem[] };

export class Quorum {
  readonly thresholds: QuorumThresholds;
  readonly mode: QuorumMode;
  readonly signerIds: readonly string[];
  readonly #keys: ReadonlyMap<string, readonly SignerKey[]>;

  private constructor(
    thresholds: QuorumThresholds,
    mode: QuorumMode,
    keys: ReadonlyMap<string, readonly SignerKey[]>,
  ) {
    this.thresholds = Object.freeze(thresholds);
    this.mode = mode;
    this.signerIds = Object.freeze([...keys.keys()].sort(compareUtf8));
    this.#keys = keys;
    Object.freeze(this);
  }

  /** Total: any value may be passed, such as a parsed policy file. */
  static define(config: QuorumConfig): QuorumDefinition {
    const problems = configProblems(config);
    if (problems.length > 0) return { ok: false, problems };
    const keys = new Map(config.signers.map(({ signerId, keys }) => [signerId, keys.map(readKey)]));
    const thresholds = normalised(config.thresholds ?? DEFAULT_THRESHOLDS);
    return { ok: true, quorum: new Quorum(thresholds, config.mode ?? "strict", keys) };
  }

  /** The keys of a signer, in force or not; undefined for a stranger. */
  keysOf(signerId: string): readonly SignerKey[] | undefined {
    return this.#keys.get(signerId);
  }

  requiredFor(tier: SafetyTier): number {
    const { standard, risky, dangerous } = this.thresholds;
    return tier === "Standard" ? standard : tier === "Risky" ? risky : dangerous;
  }
}

/** The tier that a name stands for. A name that is not known is the most demanding one. */
export function effectiveTier(tier: unknown): SafetyTier {
  return SAFETY_TIERS.find((known) => known === tier) ?? "Dangerous";
}

export function isInForce(key: SignerKey, nowMs: number): boolean {
  return key.notBeforeMs <= nowMs && nowMs < key.notAfterMs;
}

function readKey({ publicKey, notBeforeMs, notAfterMs }: SignerKeyConfig): SignerKey {
  const key = importPublicKey(publicKey);
  return { key, notBeforeMs: notBeforeMs ?? 0, notAfterMs: notAfterMs ?? Number.POSITIVE_INFINITY };
}

function normalised({ standard, risky, dangerous }: QuorumThresholds): QuorumThresholds {
  return { standard: standard || 1, risky: risky || 1, dangerous: dangerous || 1 };
}

const THRESHOLD_NAMES = ["standard", "risky", "dangerous"] as const;

/** A misspelt field would silently leave a rule out. */
export function unknownFields(value: object, known: readonly string[], at: string): readonly FieldProblem[] {
  const names = Object.keys(value).filter((name) => !known.includes(name));
  return names.map((name) => ({ field: `${at}.${name}`, message: `is not known: use ${known.join(", ")}` }));
}

function configProblems(config: unknown): readonly FieldProblem[] {
  if (!isObject(config)) return [{ field: "quorum", message: `must be an object, got ${shown(config)}` }];
  const { signers, thresholds, mode } = config;
  const problems = [...unknownFields(config, ["signers", "thresholds", "mode"], "quorum")];
  if (mode !== undefined && mode !== "strict" && mode !== "lenient") {
    problems.push({ field: "mode", message: `must be "strict" or "lenient", got ${shown(mode)}` });
  }
  if (!Array.isArray(signers) || signers.length === 0 || signers.length > MAX_SIGNERS) {
    const got = Array.isArray(signers) ? `${signers.length} entries` : shown(signers);
    problems.push({
      field: "signers",
      message: `must be an array of 1 to ${MAX_SIGNERS} signers, got ${got}`,
    });
    return problems;
  }
  const owners = new Map<string, string>();
  const seen = new Set<unknown>();
  for (const [index, signer] of signers.entries())
    problems.push(...signerProblems(index, signer, seen, owners));
  problems.push(...thresholdProblems(thresholds === undefined ? DEFAULT_THRESHOLDS : thresholds, seen.size));
  return problems;
}

function signerProblems(index: number, signer: unknown, seen: Set<unknown>, owners: Map<string, string>) {
  const at = `signers[${index}]`;
  if (!isObject(signer)) return [{ field: at, message: `must be an object, got ${shown(signer)}` }];
  const { signerId, keys } = signer;
  const problems = [...unknownFields(signer, ["signerId", "keys"], at)];
  const problem = idProblem(signerId);
  if (problem !== null) problems.push({ field: `${at}.signerId`, message: problem });
  if (seen.has(signerId)) {
    const message = `${shown(signerId)} is listed before; give each signer one entry with all its keys`;
    problems.push({ field: `${at}.signerId`, message });
  }
  seen.add(signerId);
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MAX_KEYS_PER_SIGNER) {
    const got = Array.isArray(keys) ? `${keys.length} entries` : shown(keys);
    problems.push({
      field: `${at}.keys`,
      message: `must be an array of 1 to ${MAX_KEYS_PER_SIGNER} keys, got ${got}`,
    });
    return problems;
  }
  for (const [position, key] of keys.entries())
    problems.push(...keyProblems(`${at}.keys[${position}]`, key, owners));
  return problems;
}

function keyProblems(at: string, key: unknown, owners: Map<string, string>): readonly FieldProblem[] {
  if (!isObject(key)) return [{ field: at, message: `must be an object with publicKey, got ${shown(key)}` }];
  const { publicKey, notBeforeMs, notAfterMs } = key;
  const unknown = unknownFields(key, ["publicKey", "notBeforeMs", "notAfterMs"], at);
  if (unknown.length > 0) return unknown;
  const problem = publicKeyTextProblem(publicKey);
  if (problem !== null) return [{ field: `${at}.publicKey`, message: problem }];
  const owner = owners.get(publicKey as string);
  if (owner !== undefined)
    return [{ field: `${at}.publicKey`, message: `is the key of ${owner}; one key, one place` }];
  owners.set(publicKey as string, at);
  const bounds = { notBeforeMs: notBeforeMs ?? 0, notAfterMs: notAfterMs ?? MAX_INSTANT_MS };
  for (const [name, bound] of Object.entries(bounds)) {
    if (isInstant(bound)) continue;
    const message = `must be a whole number of milliseconds from 0 to ${MAX_INSTANT_MS}, got ${shown(bound)}`;
    return [{ field: `${at}.${name}`, message }];
  }
  if ((bounds.notBeforeMs as number) < (bounds.notAfterMs as number)) return [];
  return [{ field: `${at}.notAfterMs`, message: `must be later than notBeforeMs, got ${shown(notAfterMs)}` }];
}

function thresholdProblems(thresholds: unknown, signerCount: number): readonly FieldProblem[] {
  if (!isObject(thresholds)) {
    return [{ field: "thresholds", message: `must be an object, got ${shown(thresholds)}` }];
  }
  const problems = [...unknownFields(thresholds, THRESHOLD_NAMES, "thresholds")];
  let least = { name: "", value: 1 };
  for (const name of THRESHOLD_NAMES) {
    const field = `thresholds.${name}`;
    const value = thresholds[name];
    if (!Number.isSafeInteger(value) || (value as number) < 0) {
      problems.push({
        field,
        message: `must be a whole number from 0 to ${signerCount}, got ${shown(value)}`,
      });
      continue;
    }
    const count = (value as number) || 1;
    if (count < least.value) {
      problems.push({ field, message: `must be at least ${least.name} (${least.value}), got ${count}` });
    } else if (count > signerCount) {
      problems.push({
        field,
        message: `must be at most the number of signers (${signerCount}), got ${count}`,
      });
    }
    least = { name: field, value: Math.max(count, least.value) };
  }
  return problems;
}
