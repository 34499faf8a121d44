/**
 * A world written by hand: what the nodes do and what befalls them, at given times. What runs in it is the same as in a
 * drawn world: the shipped executor, service and client, judged by the same oracles. Times are in milliseconds.
 */
import type { Fault, SimConfig } from "../config.ts";
import type { GivenWorld } from "../result.ts";
import type { ClockStart } from "../world/clock.ts";

export const SCRIPT_FAULTS = [
  "pause",
  "suspend",
  "crash",
  "cut",
  "slow",
  "clock-rate",
  "wall-step",
  "clock-jump",
  "lost-writes",
] as const;

export type ScriptFaultKind = (typeof SCRIPT_FAULTS)[number];

export interface ScriptFault {
  readonly kind: ScriptFaultKind;
  /** A node, or `store`. For cut and slow: the node at the near end of the link to the store. */
  readonly on: string;
  readonly atMs: number;
  /** 0 for what happens in an instant. */
  readonly forMs: number;
  /** Which way a link is cut or slow: to the store, from it, both (the default), or to the protected resource. */
  readonly way?: "requests" | "replies" | "both" | "writes";
  /** The rate of a clock, the milliseconds of a step or jump, the number of lost writes. */
  readonly amount?: number;
}

export interface ScriptStep {
  readonly atMs: number;
  readonly node: string;
  readonly do: "acquire" | "release" | "renew" | "write" | "revoke" | "hand-off";
  /** acquire: wait so long for a turn. Default: until the end of the script. */
  readonly waitMs?: number;
  /** acquire: after the grant, write to the protected resource so often, as long as the lease is held. */
  readonly writeEveryMs?: number;
  /** acquire: release so long after the grant. */
  readonly releaseAfterMs?: number;
  /** acquire: "no" lets the lease run out. Default: "yes". */
  readonly renew?: "yes" | "no";
  /** hand-off: who may take over. */
  readonly to?: string;
}

export interface Script {
  readonly nodes: readonly string[];
  readonly ttlMs: number;
  readonly endMs: number;
  /** The drift of clocks that the programs expect. */
  readonly driftRatio: number;
  /** How fast clocks run from the start, where that is not 1; with the store's under `store`. */
  readonly rates?: Readonly<Record<string, number>>;
  readonly steps: readonly ScriptStep[];
  readonly faults: readonly ScriptFault[];
}

/** The one thing that the nodes of a script compete for. */
export const SCRIPT_KEY = "key1";

const STORE = "store";
const EPOCH_MS = 1_700_000_000_000;
const DELAY_PART = 1 / 80;

export function givenWorld(script: Script): GivenWorld {
  const { nodes, rates = {} } = script;
  const clocks = [...nodes, STORE].map((name): [string, ClockStart] => [
    name,
    {
      monotonicMs: name === STORE ? EPOCH_MS : 1_000,
      wallMs: EPOCH_MS,
      rate: rates[name] ?? 1,
    },
  ]);
  return { config: configOf(script), names: nodes, clocks: new Map(clocks) };
}

function configOf(script: Script): SimConfig {
  const { ttlMs, nodes, driftRatio, endMs, faults } = script;
  return {
    seed: 1,
    entry: "library",
    servers: 0,
    connection: "stream",
    approvals: "no",
    clocks: isWithinBounds(script) ? "bounded" : "unbounded",
    faults: new Set(faults.map(kindOf)),
    operations: [],
    nodes: nodes.length,
    keys: 1,
    slots: 0,
    sets: "no",
    ttlMs,
    driftRatio,
    tickMs: 2,
    storeClock: "reply",
    granularityMs: 1,
    skewMs: 0,
    identity: "known",
    watch: true,
    events: "whole",
    auditIn: "memory",
    maxConcurrentCalls: 8,
    callTimeoutMs: ttlMs * 0.15,
    commandTimeoutMs: ttlMs,
    retentionMs: ttlMs * 12,
    route: "service",
    sharedHolder: false,
    faultPhaseMs: endMs,
    operationEveryMs: ttlMs,
    faultEveryMs: ttlMs,
    delayMs: ttlMs * DELAY_PART,
    timerLatenessMs: 0,
    policy: { minTtlMs: 1, maxTtlMs: ttlMs * 2, defaultTtlMs: ttlMs, graceMs: Math.floor(ttlMs / 10) },
  };
}

/** As a drawn world would call it: by these names oracles know what cannot be asked. */
function kindOf({ kind, on }: ScriptFault): Fault {
  switch (kind) {
    case "pause":
      return on === STORE ? "store-pause" : "pause";
    case "crash":
      return on === STORE ? "store-crash" : "crash";
    case "cut":
      return "partition";
    case "slow":
      return "clog";
    case "clock-rate":
      return "pause";
    default:
      return kind;
  }
}

/** Two clocks at rates further apart than the drift, or both clocks of a sleeping machine deceived, are not promised. */
export function isWithinBounds({ nodes, rates = {}, faults, driftRatio }: Script): boolean {
  const all = [
    ...[...nodes, STORE].map((name) => rates[name] ?? 1),
    ...faults.flatMap(({ kind, amount = 1 }) => (kind === "clock-rate" ? [amount] : [])),
  ];
  const slept = new Set(faults.filter(({ kind }) => kind === "suspend").map(({ on }) => on));
  const deceived = faults.some(
    ({ kind, on, amount = 0 }) => kind === "wall-step" && amount < 0 && slept.has(on),
  );
  return Math.max(...all) / Math.min(...all) <= 1 + driftRatio + 1e-9 && !deceived;
}

/** Null, or which field of the script is wrong and what to do about it. */
export function scriptProblem(script: Script): string | null {
  const { nodes, ttlMs, endMs } = script;
  const known = new Set([...nodes, STORE]);
  if (nodes.length < 1 || nodes.length > 6) return `nodes must be 1 to 6 names, got ${nodes.length}`;
  if (!(ttlMs >= 50 && ttlMs <= 3_600_000)) return `ttlMs must be from 50 to 3600000, got ${ttlMs}`;
  if (!(endMs > 0 && endMs <= ttlMs * 100)) return `endMs must be above 0 and at most 100 ttls, got ${endMs}`;
  for (const [index, { node, atMs }] of script.steps.entries()) {
    if (!nodes.includes(node))
      return `steps[${index}].node '${node}' is no node: use one of ${nodes.join(", ")}`;
    if (!(atMs >= 0)) return `steps[${index}].atMs must not be negative, got ${atMs}`;
  }
  for (const [index, fault] of script.faults.entries()) {
    const { kind, on, atMs, forMs, amount } = fault;
    const at = `faults[${index}]`;
    if (!SCRIPT_FAULTS.includes(kind))
      return `${at}.kind '${kind}' is unknown: use one of ${SCRIPT_FAULTS.join(", ")}`;
    if (!known.has(on)) return `${at}.on '${on}' is no machine: use one of ${[...known].join(", ")}`;
    if (!(atMs >= 0) || !(forMs >= 0))
      return `${at} must not begin or last below 0, got ${atMs} and ${forMs}`;
    if (kind === "clock-rate" && !(amount !== undefined && amount >= 0.1 && amount <= 10))
      return `${at}.amount, the rate of a clock, must be from 0.1 to 10, got ${amount}`;
  }
  return null;
}
