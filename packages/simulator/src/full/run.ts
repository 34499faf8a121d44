/**
 * One run: the real executor, service and client on a simulated store, network and clocks.
 *
 * Two phases. The fault phase: faults and operations as the seed draws them; whatever happens, the promises hold.
 * Then the world heals, everybody lets go, and each process asks for each key twice: all must be served
 * within a bounded time, in the order in which they asked, and afterwards nothing may be left behind.
 */
import { keyId, slotKeys } from "solehold/internal";
import { damagesRecords } from "../config.ts";
import type { RunOptions, RunResult } from "../result.ts";
import type { Trace } from "../trace/trace.ts";
import { traceOf } from "../trace/trace-of.ts";
import { withoutRealWorld } from "../world/trap.ts";
import { Nemesis } from "./nemesis.ts";
import { type Process, TENANT } from "./process.ts";
import { inAnyOrder, SET_NAMES } from "./set-workload.ts";
import { SimulatedCluster } from "./simulated-cluster.ts";
import { POOL } from "./slot-workload.ts";
import { nobodyStarves } from "./turns.ts";
import { Workload } from "./workload.ts";

/** After each event: whether the run goes on. */
type Go = () => "go on" | "stop";

export async function runFull(options: RunOptions): Promise<RunResult> {
  await options.gateway?.prepare();
  return await withoutRealWorld(async () => {
    const cluster = new SimulatedCluster(options);
    const workload = await faultPhase(cluster);
    if (cluster.violation === null) await recovery(cluster, workload);
    if (cluster.violation === null) await cluster.judgeEnd();
    const { world, config, violation, sometimesCounts } = cluster;
    const result = {
      seed: options.seed,
      config,
      violation,
      hash: world.hash,
      events: world.events,
      fired: world.choices.fired,
      sometimes: sometimesCounts,
      timeline: [...(world.timeline ?? [])],
      givenUp: cluster.oracles.givenUp,
    };
    return { ...result, trace: cluster.tracer === null ? null : await tracedRun(cluster, options) };
  });
}

async function faultPhase(cluster: SimulatedCluster): Promise<Workload> {
  const { world, config } = cluster;
  const workload = new Workload(cluster);
  const nemesis = new Nemesis(cluster, (machine) => {
    const process = cluster.processOn(machine);
    if (process !== null) workload.died(process);
    else if (cluster.servers !== null && workload.waiting)
      cluster.sometimes("a server died while clients waited");
  });
  nemesis.begin();
  workload.begin();
  await world.run(config.faultPhaseMs, () => cluster.afterEvent());
  return workload;
}

/**
 * A trace goes on for a while after a broken promise, to show what it leads to. Where all were kept it ends with the
 * faults; that of a shrunk case goes on, since there what matters may come after healing.
 */
async function tracedRun(cluster: SimulatedCluster, { allowed }: RunOptions): Promise<Trace> {
  const { world, config, violation } = cluster;
  const title = `seed ${config.seed}`;
  if (violation === null)
    return traceOf(cluster, title, allowed === undefined ? config.faultPhaseMs : world.nowMs);
  await world.run(world.nowMs + config.ttlMs / 2, () => {
    cluster.afterEvent();
    return "go on";
  });
  return traceOf(cluster, title, world.nowMs);
}

/** Longer than any lease, reservation, lost request, observation or look that may stand in the way. */
function patienceMs(cluster: SimulatedCluster): number {
  const { ttlMs, granularityMs, driftRatio, callTimeoutMs, commandTimeoutMs } = cluster.config;
  return (
    (ttlMs * 10 + granularityMs * 4 + 15_000) * (1 + driftRatio) ** 2 * clockRange(cluster) +
    callTimeoutMs +
    commandTimeoutMs +
    (cluster.servers === null ? 0 : SERVER_PATIENCE_MS)
  );
}

/** What processes ask for with priorities. */
const PREFERRED = "preferred";
/** Until hung streams are given up, dead servers forgotten and those who come back found again. */
const SERVER_PATIENCE_MS = 60_000;
/** Idle time is full of the beats of servers and clients: long retentions are left to runs without them. */
const LONGEST_RETENTION_WITH_SERVERS_MS = 5_000;

/** Out of bounds a clock may run at a third of the world's speed. */
function clockRange(cluster: SimulatedCluster): number {
  return cluster.config.clocks === "bounded" ? 1 : 3;
}

/** The world heals, everybody releases and is served again. `workload`: what is still under way. */
export async function recovery(
  cluster: SimulatedCluster,
  workload: Pick<Workload, "underWay">,
): Promise<void> {
  const { world, config, network, engine } = cluster;
  const go: Go = () => cluster.afterEvent();
  world.note("world", "heals");
  cluster.healed = true;
  network.heal();
  cluster.trails?.heal();
  engine.full = false;
  // What is frozen thaws by itself; nothing lasts longer than three ttls.
  await world.run(world.nowMs + config.ttlMs * 4, go);
  for (const machine of cluster.allMachines) cluster.start(machine);
  await started(cluster, go);
  for (const { executor } of cluster.backends) {
    if (executor.clockJumps > 0) cluster.sometimes("a jump of the store's clock was noticed");
  }
  for (const process of cluster.processes) for (const { lease } of process.holdings) void lease.release();
  await world.run(world.nowMs + patienceMs(cluster), () => (workload.underWay === 0 ? "stop" : go()));
  // A store that forgot acknowledged writes is trusted again after a while, if its fences grow by its clock.
  const isTrusted = !config.faults.has("lost-writes") || cluster.expectations.fencesGrow;
  const briefly = cluster.servers === null || config.retentionMs <= LONGEST_RETENTION_WITH_SERVERS_MS;
  const collects = briefly && config.operations.includes("collect") && config.storeClock !== "none";
  const steps = [
    repair,
    ...(isTrusted ? [servedInTurn] : []),
    ...(isTrusted && config.slots > 0 ? [slotsServed] : []),
    ...(isTrusted && config.sets === "yes" ? [setsServed] : []),
    ...(isTrusted && cluster.servers === null ? [servedByPriority] : []),
    ...(isTrusted ? [nobodyStarves] : []),
    ...(collects ? [collected] : []),
    nothingLeft,
  ];
  for (const step of steps) if (cluster.violation === null) await step(cluster, go);
}

/** A process that starts again first opens the audit trail of its last life. */
async function started(cluster: SimulatedCluster, go: Go): Promise<void> {
  const { world } = cluster;
  if (cluster.starting === 0) return;
  await world.run(world.nowMs + patienceMs(cluster), () => (cluster.starting === 0 ? "stop" : go()));
  if (cluster.starting > 0) cluster.fail("liveness", "a process did not start after healing");
}

/** An operator repairs damaged records, above every generation that was ever granted. */
async function repair(cluster: SimulatedCluster, go: Go): Promise<void> {
  const { world, config, keys, log } = cluster;
  const [operator] = cluster.backends;
  if (!damagesRecords(config) || operator === undefined) return;
  const highest = [...log.generationOfToken.values()].reduce((top, each) => (each > top ? each : top), 0n);
  const sets = SET_NAMES.map((name) => ({ tenant: TENANT, name }));
  for (const key of [...keys, ...slotKeys(POOL, config.slots), ...sets])
    operator.executor.repair(key, highest + 100n).catch(() => undefined);
  await world.run(world.nowMs + config.ttlMs, go);
}

/**
 * Each process asks twice for each key. All are granted, and first come is first served: within a process
 * that decides by itself, and at a server in the order in which requests arrived there.
 */
async function servedInTurn(cluster: SimulatedCluster, go: Go): Promise<void> {
  const { world, keys } = cluster;
  const served: { readonly process: string; readonly key: string; readonly place: number }[] = [];
  const waitMs = Math.ceil(patienceMs(cluster));
  let waiting = 0;
  cluster.queues.begin(keys.filter((key) => (cluster.engine.recordOf(key)?.handoff ?? null) === null));
  for (const process of cluster.processes) {
    for (const key of keys) {
      for (const place of [1, 2]) {
        waiting += 1;
        askFor(process, key.name, waitMs).then(
          async (lease) => {
            served.push({ process: process.name, key: keyId(key), place });
            cluster.hold(process, lease);
            await lease.release();
            waiting -= 1;
          },
          (error: unknown) =>
            cluster.fail(
              livenessOf(cluster, process),
              `${process.name} did not get ${key.name} after healing: ${describe(error)}`,
            ),
        );
      }
    }
  }
  await world.run(world.nowMs + waitMs * 2, () => (waiting === 0 ? "stop" : go()));
  if (cluster.violation !== null) return;
  if (waiting > 0) cluster.fail("liveness", `${waiting} waiters were not served after healing`);
  if (cluster.servers !== null) {
    const disorder = cluster.queues.disorder();
    if (disorder !== null) cluster.fail("first-come-first-served", disorder);
    return;
  }
  for (const { process, key, place } of served) {
    const earlier = served.find((each) => each.process === process && each.key === key);
    if (earlier?.place === 2 && place === 1)
      cluster.fail("first-come-first-served", `${process} served its second waiter for ${key} first`);
  }
}

/**
 * While one holds a lease each process asks for it twice, first without a priority, then with one: of its two the second is
 * served first. Between processes a ticket may be missed, and at servers requests may part: there it is not asked.
 */
async function servedByPriority(cluster: SimulatedCluster, go: () => "go on" | "stop"): Promise<void> {
  const { world, config, processes } = cluster;
  const waitMs = Math.ceil(patienceMs(cluster));
  const options = { ttl: config.ttlMs, wait: waitMs };
  let waiting = processes.length * 2;
  const ask = async (process: Process, priority: number): Promise<void> => {
    const lease = await process.leases.acquire(PREFERRED, { ...options, priority });
    if (priority === 0 && preferred.has(process))
      cluster.fail("priority", `${process.name} served its waiter with the lower priority first`);
    preferred.delete(process);
    cluster.hold(process, lease);
    await lease.release();
    waiting -= 1;
  };
  const fail = (error: unknown): void =>
    cluster.fail("liveness", `not everybody got ${PREFERRED} after healing: ${describe(error)}`);
  /** Those whose waiter with the higher priority waits. */
  const preferred = new Set(processes);
  const hold = async (owner: Process): Promise<void> => {
    const lease = await owner.leases.acquire(PREFERRED, options);
    cluster.hold(owner, lease);
    for (const process of processes) for (const priority of [0, 9]) ask(process, priority).catch(fail);
    world.schedule(world.nowMs + config.ttlMs, owner.machine, "releases", () => void lease.release());
  };
  for (const owner of processes.slice(0, 1)) hold(owner).catch(fail);
  await world.run(world.nowMs + waitMs * 2, () => (waiting === 0 ? "stop" : go()));
  if (waiting > 0 && cluster.violation === null)
    cluster.fail("liveness", `${waiting} waiters for ${PREFERRED} were not served after healing`);
}

/** Each process asks three times for a slot, and all are granted. */
async function slotsServed(cluster: SimulatedCluster, go: Go): Promise<void> {
  const { ttlMs: ttl, slots } = cluster.config;
  await eachServed(cluster, go, "a slot", async (process, wait) => {
    const lease = await process.leases.acquire(POOL.name, { slots, ttl, wait });
    cluster.hold(process, lease);
    await lease.release();
  });
}

/** Each process asks three times for all the names that are wanted together, and nobody waits in a circle. */
async function setsServed(cluster: SimulatedCluster, go: Go): Promise<void> {
  const { ttlMs: ttl } = cluster.config;
  const random = cluster.world.choices.stream("orders of names");
  await eachServed(cluster, go, "all of a set", async (process, wait) => {
    const set = await process.leases.acquireAll(inAnyOrder(random), { ttl, wait });
    for (const lease of set.leases) cluster.hold(process, lease);
    await set.release();
  });
}

async function eachServed(
  cluster: SimulatedCluster,
  go: Go,
  what: string,
  ask: (process: Process, waitMs: number) => Promise<void>,
): Promise<void> {
  const { world } = cluster;
  const waitMs = Math.ceil(patienceMs(cluster));
  const asked = cluster.processes.flatMap((process) => [process, process, process]);
  let waiting = asked.length;
  for (const process of asked)
    ask(process, waitMs).then(
      () => {
        waiting -= 1;
      },
      (error: unknown) =>
        cluster.fail(
          livenessOf(cluster, process),
          `${process.name} did not get ${what} after healing: ${describe(error)}`,
        ),
    );
  await world.run(world.nowMs + waitMs * 2, () => (waiting === 0 ? "stop" : go()));
  if (cluster.violation === null && waiting > 0)
    cluster.fail("liveness", `${waiting} waiters for ${what} were not served after healing`);
}

/** A process that was taken for dead while it only stood still is served like all others. */
function livenessOf({ oracles }: SimulatedCluster, { name }: Process): string {
  return oracles.suspicion.wasSuspected(name) ? "false-suspicion-recovery" : "liveness";
}

async function askFor(
  process: Process,
  name: string,
  waitMs: number,
): ReturnType<Process["leases"]["acquire"]> {
  return await process.leases.acquire(name, {
    ttl: process.clientExecutor.policy.defaultTtlMs,
    wait: waitMs,
  });
}

/** Long after, the ended records go. Fences still grow. */
async function collected(cluster: SimulatedCluster, go: Go): Promise<void> {
  const { world, config, keys } = cluster;
  const [collector] = cluster.backends;
  const [client] = cluster.processes;
  if (collector === undefined || client === undefined) return;
  const retentionMs = config.retentionMs * (1 + config.driftRatio) ** 2 * clockRange(cluster) * 1.1;
  await world.run(world.nowMs + retentionMs, go);
  collector.executor.collect(TENANT).catch(() => undefined);
  await world.run(world.nowMs + config.callTimeoutMs * 2, go);
  for (const { name } of keys) {
    client.leases.tryAcquire(name).then(
      (attempt) => {
        if (attempt.ok) void attempt.lease.release();
      },
      () => undefined,
    );
  }
  await world.run(world.nowMs + config.commandTimeoutMs * 2, go);
}

/** No call without an end, no timer that nobody will cancel. */
async function nothingLeft(cluster: SimulatedCluster, go: Go): Promise<void> {
  const { world, config, log } = cluster;
  for (const process of cluster.processes)
    process
      .shutDown()
      .catch((error: unknown) => cluster.fail("no-surprise", `shutting down met ${describe(error)}`));
  await world.run(world.nowMs + config.callTimeoutMs * 4 + config.ttlMs * 4 + 10_000, go);
  for (const { endpoint, backend } of cluster.servers?.lives.running ?? [])
    endpoint
      .close()
      .then(() => backend.service.close())
      .catch((error: unknown) => cluster.fail("no-surprise", `closing a server met ${describe(error)}`));
  if (cluster.servers !== null) await world.run(world.nowMs + config.callTimeoutMs * 4 + 30_000, go);
  if (cluster.trails !== null) {
    for (const { name, audit } of cluster.backends)
      audit
        .close()
        .catch((error: unknown) =>
          cluster.fail("no-surprise", `closing ${name}'s audit met ${describe(error)}`),
        );
    await world.run(world.nowMs + config.callTimeoutMs + config.ttlMs * 4 + 1_000, go);
  }
  if (cluster.violation !== null) return;
  const alive = new Set(cluster.processes.map(({ name }) => name));
  const open = log.calls.find(
    (call) => call.endedMs === null && alive.has(call.process) && call.request.op !== "get",
  );
  if (open !== undefined)
    cluster.fail(
      "every-call-ends",
      `${open.process} still waits for its ${open.request.op} of ${Math.round(open.startedMs)} ms`,
    );
  for (const { name, env } of [...cluster.processes, ...cluster.backends]) {
    if (env.pendingTimers > 0) cluster.fail("no-leaks", `${name} left ${env.pendingTimers} timers behind`);
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
