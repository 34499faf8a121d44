/**
 * What one seed's world is like. Every seed draws its own subset of faults and operations and every knob
 * (a "swarm"): runs that differ in kind find more than runs that all have a little of everything. Tight but
 * legal values are among them.
 */
import type { LeasePolicy } from "solehold/internal";
import { RandomStream } from "./world/random.ts";

export const FAULTS = [
  "loss",
  "duplicate",
  "slow",
  "partition",
  "clog",
  "pause",
  "suspend",
  "wall-step",
  "crash",
  "store-pause",
  "fail-before",
  "lost-reply",
  "late-apply",
  "conflict-unknown",
  "read-fail",
  "disk-full",
  "watch-loss",
  "corrupt",
  "clock-jump",
  "lost-writes",
  "store-crash",
  "misdirected-write",
  "fsync-fail",
] as const;

export type Fault = (typeof FAULTS)[number];

export const OPERATIONS = [
  "try",
  "wait",
  "retry-key",
  "renew",
  "release",
  "handoff",
  "transfer",
  "revoke",
  "break",
  "use",
  "inspect",
  "write",
  "collect",
] as const;

export type Operation = (typeof OPERATIONS)[number];

/** "bounded": rates stay within the drift that was configured. "unbounded": they do not. */
export type ClockRegime = "bounded" | "unbounded";

/** "library": each process decides by itself on the store. "server": all go through lease servers. */
export type Entry = "library" | "server";

export interface SimConfig {
  readonly seed: number;
  readonly entry: Entry;
  /** How many servers there are, and whether clients have streams to them or only plain HTTP. */
  readonly servers: number;
  readonly connection: "stream" | "http";
  /** One more key, which needs the consent of signers (through a service only). */
  readonly approvals: "yes" | "no";
  /** One more name, which so many may hold at a time; 0 for none. */
  readonly slots: number;
  /** Some names are wanted together, by `acquireAll`. */
  readonly sets: "yes" | "no";
  readonly clocks: ClockRegime;
  readonly faults: ReadonlySet<Fault>;
  readonly operations: readonly Operation[];
  readonly nodes: number;
  readonly keys: number;
  readonly ttlMs: number;
  readonly driftRatio: number;
  readonly tickMs: number;
  readonly storeClock: "exact" | "reply" | "none";
  readonly granularityMs: number;
  /** How far apart the clocks of the store's machines are, each of which may answer. */
  readonly skewMs: number;
  /** "known": the store says when another server took over, and notices that it lost what a client saw. */
  readonly identity: "known" | "unknown";
  readonly watch: boolean;
  /** "bare": some watch events leave the record out. */
  readonly events: "whole" | "bare";
  /** Where the audit of a service is: in memory, or in files on a disk that crashes. */
  readonly auditIn: "memory" | "files";
  readonly maxConcurrentCalls: number;
  readonly callTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly retentionMs: number;
  /** Clients go through the lease service, with its audit, or straight to the executor. */
  readonly route: "service" | "executor";
  /** All nodes use one holder name: only tokens tell them apart. */
  readonly sharedHolder: boolean;
  /** Faults and operations happen for this long; then the world heals. */
  readonly faultPhaseMs: number;
  readonly operationEveryMs: number;
  readonly faultEveryMs: number;
  readonly delayMs: number;
  readonly timerLatenessMs: number;
  readonly policy: Partial<LeasePolicy>;
}

export interface ConfigLimits {
  readonly clocks?: ClockRegime;
  /** Only these faults; all when not given. */
  readonly faults?: readonly Fault[];
  /** Default: without servers. */
  readonly entry?: Entry | "drawn";
  /** Drawn when not given. */
  readonly auditIn?: SimConfig["auditIn"];
}

/** Faults that no client can survive unharmed: rare, and with promises of their own (see expectations). */
const DRASTIC: ReadonlySet<Fault> = new Set<Fault>([
  "corrupt",
  "clock-jump",
  "lost-writes",
  "misdirected-write",
]);

/** Drawn from streams of their own: the other draws of a seed are the same with and without them. */
const APART: ReadonlySet<Fault> = new Set<Fault>(["misdirected-write", "fsync-fail"]);

const LONGEST_TTL_WITH_SERVERS_MS = 3_000;

/** Whether records may become unreadable: nothing is granted on them until an operator repairs them. */
export function damagesRecords({ faults }: Pick<SimConfig, "faults">): boolean {
  return faults.has("corrupt") || faults.has("misdirected-write");
}

export function drawConfig(seed: number, limits: ConfigLimits = {}): SimConfig {
  const random = new RandomStream(seed, "config");
  const clocks = limits.clocks ?? "bounded";
  const faults = new Set<Fault>();
  const density = random.pick([0.1, 0.3, 0.5]);
  for (const fault of FAULTS) {
    // Rare in worlds with all faults, but not where somebody asked for this one.
    const drasticRate = limits.faults === undefined ? 0.07 : 0.5;
    const stream = APART.has(fault) ? new RandomStream(seed, fault) : random;
    const drawn = stream.chance(DRASTIC.has(fault) ? drasticRate : density);
    if (drawn && (limits.faults === undefined || limits.faults.includes(fault))) faults.add(fault);
  }
  const operations = OPERATIONS.filter((operation) => random.chance(operation === "try" ? 1 : 0.6));
  const storeClock = random.pick(["exact", "reply", "reply", "none"] as const);
  // An HTTP Date header has whole seconds; leases shorter than that would never be taken over in time.
  const coarse = storeClock === "reply" && random.chance(0.15);
  const drawnTtlMs = coarse
    ? random.whole(2_500, 6_000)
    : random.pick([60, 150, 400, 1_000, 1_000, 3_000, 10_000]);
  const entry = drawEntry(seed, limits.entry ?? "library");
  // Servers and their clients have beats of their own, by the second: long worlds would hold little else.
  const ttlMs = entry.entry === "server" ? Math.min(drawnTtlMs, LONGEST_TTL_WITH_SERVERS_MS) : drawnTtlMs;
  const delayMs = random.pick([0.2, 1, 3, 10]) * Math.min(1, ttlMs / 400);
  return {
    seed,
    ...entry,
    approvals: new RandomStream(seed, "approvals").chance(0.15) ? "yes" : "no",
    slots: new RandomStream(seed, "slots").pick([0, 0, 0, 2, 3]),
    sets: new RandomStream(seed, "sets").chance(0.2) ? "yes" : "no",
    clocks,
    faults,
    operations,
    nodes: random.whole(2, 4),
    keys: drawKeys(random, faults),
    ttlMs,
    driftRatio: random.pick([0, 0.001, 0.01, 0.01, 0.1]),
    tickMs: random.whole(1, 3),
    storeClock,
    granularityMs: coarse ? 1_000 : 1,
    skewMs: storeClock === "reply" && new RandomStream(seed, "skew").chance(0.2) ? Math.ceil(ttlMs / 8) : 0,
    identity: new RandomStream(seed, "identity").chance(0.7) ? "known" : "unknown",
    watch: random.chance(0.6),
    events: new RandomStream(seed, "events").chance(0.5) ? "bare" : "whole",
    auditIn: limits.auditIn ?? (new RandomStream(seed, "audit").chance(0.5) ? "files" : "memory"),
    maxConcurrentCalls: random.pick([1, 2, 8]),
    callTimeoutMs: Math.ceil(ttlMs * random.pick([0.3, 1, 3])),
    commandTimeoutMs: Math.ceil(ttlMs * random.pick([0.5, 1, 4])),
    // Far longer than any request can live: a slow message takes up to three ttls.
    retentionMs: Math.ceil(ttlMs * 12),
    route: random.chance(0.5) ? "service" : "executor",
    sharedHolder: random.chance(0.15),
    faultPhaseMs: ttlMs * random.pick([4, 8, 12]),
    operationEveryMs: ttlMs * random.pick([0.2, 0.4, 0.8]),
    faultEveryMs: ttlMs * random.pick([0.5, 1, 3]),
    delayMs,
    timerLatenessMs: random.pick([0, 0, 0.5]),
    policy: {
      minTtlMs: 1,
      maxTtlMs: ttlMs * 2,
      defaultTtlMs: ttlMs,
      graceMs: Math.floor(ttlMs / 10),
    },
  };
}

/** A write can only go astray where there is another place for it. */
function drawKeys(random: RandomStream, faults: ReadonlySet<Fault>): number {
  const drawn = random.pick([1, 1, 2]);
  return faults.has("misdirected-write") ? 2 : drawn;
}

/** From a stream of its own: the other draws of a seed are the same with and without servers. */
function drawEntry(
  seed: number,
  wanted: Entry | "drawn",
): Pick<SimConfig, "entry" | "servers" | "connection"> {
  const random = new RandomStream(seed, "entry");
  const drawn = random.chance(1 / 3) ? "server" : "library";
  const servers = random.pick([1, 1, 2]);
  const connection = random.pick(["stream", "stream", "http"] as const);
  const entry = wanted === "drawn" ? drawn : wanted;
  return { entry, servers: entry === "server" ? servers : 0, connection };
}

/** What may be asked of a world, given what it does to its inhabitants. */
export interface Expectations {
  /** No two believe at once. */
  readonly exclusive: boolean;
  /** A belief has its record, and reservations last as long as was written, by the store's own clock. */
  readonly recordsLast: boolean;
  /** No fence is ever granted twice or after a higher one. */
  readonly fencesGrow: boolean;
  /** Answers fit one order of effects. */
  readonly linearizable: boolean;
}

/**
 * What cannot be asked, and why. Rates out of bounds: a slow holder's time never ends for a fast store; only
 * the guard is left. Lost writes: a store that forgets what it acknowledged lets two believe; fences grow all the same
 * where they come from its clock. A jump of the store's clock: leases end early by it. A client that knew the clock
 * before notices, and observes for a ttl; one that meets the clock for the first time after the jump does so if the
 * store says that another server took over. A store that judges by its own clock does not observe. If the clock may go
 * back, a fence that was lost or collected may come again. A store without a clock cannot jump.
 */
export function expectationsOf(config: SimConfig): Expectations {
  const { faults, clocks, storeClock, identity, operations } = config;
  const storeIsHonest = !faults.has("lost-writes");
  const jumps = faults.has("clock-jump") && storeClock !== "none";
  const jumpsAreKnown = storeClock === "reply" && identity === "known";
  const growsByClock = storeClock !== "none" && !jumps;
  const mayBeExclusive = clocks === "bounded" && storeIsHonest;
  return {
    exclusive: mayBeExclusive && (!jumps || jumpsAreKnown),
    recordsLast: mayBeExclusive && !jumps,
    fencesGrow: storeIsHonest ? !jumps || !operations.includes("collect") : growsByClock,
    linearizable: storeIsHonest,
  };
}

export function describeConfig(config: SimConfig): string {
  const { faults, operations, policy: _policy, ...rest } = config;
  const knobs = Object.entries(rest).map(([name, value]) => `${name}=${String(value)}`);
  return `${knobs.join(" ")}\nfaults: ${[...faults].join(", ") || "none"}\noperations: ${operations.join(", ")}`;
}
