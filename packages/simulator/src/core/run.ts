/**
 * One run of the core tier: the shipped decision, clock and validity functions in a synchronous world.
 * Same seeds, same configurations, same oracles as the full tier, at many times its speed; without the
 * client, the service, watches and idempotency keys, which need promises.
 */
import { createPolicy, decide, keyId, type LeaseKey } from "solehold/internal";
import { drawConfig, expectationsOf } from "../config.ts";
import { Nemesis } from "../full/nemesis.ts";
import { situations } from "../full/situations.ts";
import type { Believer, OracleContext, Situation } from "../oracles/oracle.ts";
import { OracleSet } from "../oracles/set.ts";
import type { RunOptions, RunResult, Violation } from "../result.ts";
import { type AppliedWrite, StoreEngine } from "../store/engine.ts";
import { drawClock, drawStoreClock } from "../world/draw-clock.ts";
import { Machine } from "../world/machine.ts";
import { Network } from "../world/network.ts";
import { Choices } from "../world/random.ts";
import { World } from "../world/world.ts";
import { CoreHolder, type CoreOperation } from "./holder.ts";

const OPERATIONS: readonly CoreOperation[] = [
  "acquire",
  "acquire",
  "acquire",
  "renew",
  "renew",
  "release",
  "handoff",
  "revoke",
  "break",
];

/** Short runs, many of them. */
const LENGTH_TTLS = 5;

export function runCore(options: RunOptions): RunResult {
  const drawn = drawConfig(options.seed, options);
  const storeClock = drawn.storeClock === "none" ? "reply" : drawn.storeClock;
  const config = { ...drawn, storeClock, faultPhaseMs: drawn.ttlMs * LENGTH_TTLS } as const;
  const mutations = options.mutations ?? {};
  const choices = new Choices(options.seed, options.allowed ?? "all");
  const world = new World(choices, { record: options.record ?? "no" });
  const rate = (fault: "loss" | "duplicate" | "slow", value: number): number =>
    config.faults.has(fault) ? value : 0;
  const network = new Network(world, {
    delayMs: config.delayMs,
    lossRate: rate("loss", 0.1),
    duplicateRate: rate("duplicate", 0.1),
    slowRate: rate("slow", 0.15),
    slowMs: config.ttlMs * 3,
  });
  const clocks = choices.stream("clocks");
  const engine = new StoreEngine({
    machine: new Machine(world, "store", drawStoreClock(config, clocks)),
    granularityMs: config.granularityMs,
    writes: mutations.engineWrites ?? "conditional",
    onWrite: (write) => {
      world.note("store", "applied", () => describeWrite(write));
      oracles.onWrite(write);
    },
  });
  const machines = Array.from(
    { length: config.nodes },
    (_, index) => new Machine(world, `n${index + 1}`, drawClock(config, clocks)),
  );
  const keys: readonly LeaseKey[] = Array.from({ length: config.keys }, (_, index) => ({
    tenant: "default",
    name: `key${index + 1}`,
  }));
  const believers = new Map<string, Believer[]>();
  const sometimes = new Map<Situation, number>();
  let violation: Violation | null = null;
  const count = (situation: Situation): void =>
    void sometimes.set(situation, (sometimes.get(situation) ?? 0) + 1);
  const context: OracleContext = {
    config,
    keys,
    expectations: expectationsOf(config),
    nowMs: () => world.nowMs,
    storeNowMs: () => engine.nowMs(),
    recordOf: (key) => engine.recordOf(key),
    machineOf: (name) => machines.find((each) => each.name === name) ?? null,
    believers,
    calls: [],
    lostEffects: () => [],
    fail: (oracle, message) => {
      violation ??= { oracle, message, atMs: world.nowMs };
      world.note("!", "VIOLATION", () => `${oracle}: ${message}`);
    },
    sometimes: count,
  };
  const policy = createPolicy({ ...config.policy, ...mutations.policy });
  const oracles = new OracleSet(context, keys, policy, [situations(context)]);
  let nonces = 0;
  const drift = { driftRatio: config.driftRatio, tickMs: config.tickMs };
  const holders = machines.map(
    (machine) =>
      new CoreHolder({
        world,
        network,
        engine,
        machine,
        config,
        policy,
        drift,
        believedDrift: mutations.clientDrift?.(drift) ?? drift,
        decide: mutations.decide?.(decide) ?? decide,
        nonce: () => {
          nonces += 1;
          return `n${nonces}`;
        },
        onBelief: (believer) => {
          const id = keyId(believer.key);
          believers.set(id, [...(believers.get(id) ?? []), believer]);
        },
        sometimes: count,
      }),
  );
  new Nemesis({
    world,
    network,
    engine,
    machines,
    links: machines.map((machine) => [machine, engine.machine]),
    keys,
    config,
    // A process that is gone is a pause without an end, for those who keep their leases in memory.
    crash: (machine) => machine.pause(config.ttlMs * 2),
    restart: () => undefined,
  }).begin();
  for (const holder of holders) planNext(world, holder, keys, config.operationEveryMs, config.faultPhaseMs);
  world.runSynchronously(config.faultPhaseMs * 2, () => {
    if (violation === null) oracles.afterEvent();
    return violation === null ? "go on" : "stop";
  });
  if (violation === null) oracles.atEnd();
  return {
    seed: options.seed,
    tier: "core",
    config,
    violation,
    hash: world.hash,
    events: world.events,
    fired: choices.fired,
    sometimes,
    timeline: world.timeline ?? [],
    trace: null,
    givenUp: 0,
  };
}

function planNext(
  world: World,
  holder: CoreHolder,
  keys: readonly LeaseKey[],
  everyMs: number,
  untilMs: number,
): void {
  const random = world.choices.stream(`operations ${holder.machine.name}`);
  const atMs = world.nowMs + random.exponential(everyMs);
  if (atMs > untilMs) return;
  world.schedule(atMs, holder.machine, "operation", () => {
    const operation = random.pick(OPERATIONS);
    const key = random.pick(keys);
    if (world.choices.fires(`operation ${holder.machine.name}`, 0.95)) {
      world.note(holder.machine.name, operation, () => keyId(key));
      holder.start(operation, key, random);
    }
    planNext(world, holder, keys, everyMs, untilMs);
  });
}

function describeWrite({ key, after, by }: AppliedWrite): string {
  return after === null
    ? `${by}: ${keyId(key)} deleted`
    : `${by}: ${after.state} ${after.holder} ${after.generation}`;
}
