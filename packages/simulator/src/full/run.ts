/**
 * One run of the full tier: the real executor, service and client on a simulated store, network and clocks.
 *
 * Two phases. Turmoil: faults and operations as the seed draws them; whatever happens, the promises hold.
 * Then the world heals, everybody lets go, and each process asks for each key twice: all must be served
 * within a bounded time, in the order in which they asked, and afterwards nothing may be left behind.
 */
import { keyId } from "solehold/internal";
import type { RunOptions, RunResult } from "../result.ts";
import { withoutRealWorld } from "../world/trap.ts";
import { askForDangerous, enough } from "./dangerous.ts";
import { Nemesis } from "./nemesis.ts";
import { type Process, TENANT } from "./process.ts";
import { Stage } from "./stage.ts";
import { nobodyStarves } from "./turns.ts";
import { Workload } from "./workload.ts";

export async function runFull(options: RunOptions): Promise<RunResult> {
  // These are loaded when they are first needed; loading is real I/O, which must not happen inside a run.
  await import("solehold/internal");
  await import("solehold/internal");
  await import("solehold/internal");
  await options.gateway?.prepare();
  return await withoutRealWorld(async () => {
    const stage = new Stage(options);
    const workload = await turmoil(stage);
    if (stage.violation === null) await recovery(stage, workload);
    if (stage.violation === null) await stage.judgeEnd();
    const { world, config, violation, sometimesCounts } = stage;
    return {
      seed: options.seed,
      tier: "full",
      config,
      violation,
      hash: world.hash,
      events: world.events,
      fired: world.choices.fired,
      sometimes: sometimesCounts,
      timeline: world.timeline ?? [],
      givenUp: stage.oracles.givenUp,
    };
  });
}

async function turmoil(stage: Stage): Promise<Workload> {
  const { world, config, network, engine, machines, keys, log } = stage;
  const nemesis = new Nemesis({
    world,
    network,
    engine,
    machines: stage.allMachines,
    links: stage.links,
    keys,
    config,
    crash: (machine) => {
      const process = stage.processOn(machine);
      if (process === null && stage.servers !== null && workload.waiting)
        stage.sometimes("a server died while clients waited");
      stage.crash(machine);
      if (process !== null) workload.died(process);
    },
    restart: (machine) => stage.start(machine),
  });
  nemesis.begin();
  const workload = new Workload({
    world,
    config,
    keys,
    machines,
    log,
    processOn: (machine) => stage.processOn(machine),
    collect: async (process) => {
      const { executor } = process.backend ?? stage.backends[0] ?? {};
      await executor?.collect(TENANT);
    },
    askForDangerous: (process, random) =>
      askForDangerous(process, random, {
        ttlMs: config.ttlMs,
        storeNowMs: () => engine.nowMs(),
        onPresented: (presented) => {
          if (enough(presented)) stage.quorum.approved(presented.holder);
        },
        onLease: (holder, lease) => {
          stage.hold(holder, lease);
          void lease.release();
        },
      }),
    onLease: (process, lease) => {
      stage.hold(process, lease);
      if (stage.healed) void lease.release();
    },
    onSecret: (process, lease) =>
      stage.oracles.ownership.adopted(`${keyId(lease.key)}@${lease.fence}`, process.name),
    onAdopted: (process, lease) => {
      stage.adopt(process, lease);
      if (stage.healed) void lease.release();
    },
    guardedWrite: (process, lease) => stage.guardedWrite(process, lease),
    send: (from, to, label, deliver) => void network.send(from, to, label, deliver),
    onSurprise: (process, error) => stage.fail("no-surprise", `${process.name} met ${describe(error)}`),
    sometimes: (situation) => stage.sometimes(situation),
  });
  workload.begin();
  await world.run(config.turmoilMs, () => stage.afterEvent());
  return workload;
}

/** Longer than any lease, reservation, lost request, observation or look that may stand in the way. */
function patienceMs(stage: Stage): number {
  const { ttlMs, granularityMs, driftRatio, callTimeoutMs, commandTimeoutMs } = stage.config;
  return (
    (ttlMs * 10 + granularityMs * 4 + 15_000) * (1 + driftRatio) ** 2 * clockRange(stage) +
    callTimeoutMs +
    commandTimeoutMs +
    (stage.servers === null ? 0 : SERVER_PATIENCE_MS)
  );
}

/** Until hung streams are given up, dead servers forgotten and those who come back found again. */
const SERVER_PATIENCE_MS = 60_000;
/** Idle time is full of the beats of servers and clients: long retentions are left to runs without them. */
const LONGEST_RETENTION_WITH_SERVERS_MS = 5_000;

/** Out of bounds a clock may run at a third of the world's speed. */
function clockRange(stage: Stage): number {
  return stage.config.clocks === "bounded" ? 1 : 3;
}

async function recovery(stage: Stage, workload: Workload): Promise<void> {
  const { world, config, network, engine } = stage;
  const go = (): "go on" | "stop" => stage.afterEvent();
  world.note("world", "heals");
  stage.healed = true;
  network.heal();
  engine.full = false;
  // What is frozen thaws by itself; nothing lasts longer than three ttls.
  await world.run(world.nowMs + config.ttlMs * 4, go);
  for (const machine of stage.allMachines) stage.start(machine);
  await started(stage, go);
  for (const { executor } of stage.backends) {
    if (executor.clockJumps > 0) stage.sometimes("a jump of the store's clock was noticed");
  }
  for (const process of stage.processes) for (const { lease } of process.holdings) void lease.release();
  await world.run(world.nowMs + patienceMs(stage), () => (workload.underWay === 0 ? "stop" : go()));
  if (stage.violation !== null) return;
  await repair(stage, go);
  // A store that forgot acknowledged writes is trusted again after a while, if its fences grow by its clock.
  const isTrusted = !config.faults.has("lost-writes") || stage.expectations.fencesGrow;
  if (isTrusted) await servedInTurn(stage, go);
  if (stage.violation !== null) return;
  if (isTrusted) await nobodyStarves(stage, go);
  if (stage.violation !== null) return;
  const briefly = stage.servers === null || config.retentionMs <= LONGEST_RETENTION_WITH_SERVERS_MS;
  if (briefly && config.operations.includes("collect") && config.storeClock !== "none")
    await collected(stage, go);
  if (stage.violation !== null) return;
  await nothingLeft(stage, go);
}

/** Whoever starts again first brings into its audit what its last life left in the store. */
async function started(stage: Stage, go: () => "go on" | "stop"): Promise<void> {
  const { world } = stage;
  if (stage.starting === 0) return;
  await world.run(world.nowMs + patienceMs(stage), () => (stage.starting === 0 ? "stop" : go()));
  if (stage.starting > 0) stage.fail("liveness", "a process did not start after healing");
}

/** An operator repairs damaged records, above every generation that was ever granted. */
async function repair(stage: Stage, go: () => "go on" | "stop"): Promise<void> {
  const { world, config, keys, log } = stage;
  const [operator] = stage.backends;
  if (!config.faults.has("corrupt") || operator === undefined) return;
  const highest = [...log.generationOfToken.values()].reduce((top, each) => (each > top ? each : top), 0n);
  for (const key of keys) operator.executor.repair(key, highest + 100n).catch(() => undefined);
  await world.run(world.nowMs + config.ttlMs, go);
}

/**
 * Each process asks twice for each key. All are granted, and first come is first served: within a process
 * that decides by itself, and at a server in the order in which requests arrived there.
 */
async function servedInTurn(stage: Stage, go: () => "go on" | "stop"): Promise<void> {
  const { world, keys } = stage;
  const served: { readonly process: string; readonly key: string; readonly place: number }[] = [];
  const waitMs = Math.ceil(patienceMs(stage));
  let waiting = 0;
  stage.lines.begin(keys.filter((key) => (stage.engine.recordOf(key)?.handoff ?? null) === null));
  for (const process of stage.processes) {
    for (const key of keys) {
      for (const place of [1, 2]) {
        waiting += 1;
        askFor(process, key.name, waitMs).then(
          async (lease) => {
            served.push({ process: process.name, key: keyId(key), place });
            stage.hold(process, lease);
            await lease.release();
            waiting -= 1;
          },
          (error: unknown) =>
            stage.fail(
              "liveness",
              `${process.name} did not get ${key.name} after healing: ${describe(error)}`,
            ),
        );
      }
    }
  }
  await world.run(world.nowMs + waitMs * 2, () => (waiting === 0 ? "stop" : go()));
  if (stage.violation !== null) return;
  if (waiting > 0) stage.fail("liveness", `${waiting} waiters were not served after healing`);
  if (stage.servers !== null) {
    const disorder = stage.lines.disorder();
    if (disorder !== null) stage.fail("first-come-first-served", disorder);
    return;
  }
  for (const { process, key, place } of served) {
    const earlier = served.find((each) => each.process === process && each.key === key);
    if (earlier?.place === 2 && place === 1)
      stage.fail("first-come-first-served", `${process} served its second waiter for ${key} first`);
  }
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
async function collected(stage: Stage, go: () => "go on" | "stop"): Promise<void> {
  const { world, config, keys } = stage;
  const [collector] = stage.backends;
  const [client] = stage.processes;
  if (collector === undefined || client === undefined) return;
  const retentionMs = config.retentionMs * (1 + config.driftRatio) ** 2 * clockRange(stage) * 1.1;
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
async function nothingLeft(stage: Stage, go: () => "go on" | "stop"): Promise<void> {
  const { world, config, log } = stage;
  for (const process of stage.processes)
    process
      .shutDown()
      .catch((error: unknown) => stage.fail("no-surprise", `shutting down met ${describe(error)}`));
  await world.run(world.nowMs + config.callTimeoutMs * 4 + config.ttlMs * 4 + 10_000, go);
  for (const { endpoint, backend } of stage.servers?.running ?? [])
    endpoint
      .close()
      .then(() => backend.service.close())
      .catch((error: unknown) => stage.fail("no-surprise", `closing a server met ${describe(error)}`));
  if (stage.servers !== null) await world.run(world.nowMs + config.callTimeoutMs * 4 + 30_000, go);
  if (stage.trails !== null) {
    for (const { name, audit } of stage.backends)
      audit
        .close()
        .catch((error: unknown) =>
          stage.fail("no-surprise", `closing ${name}'s audit met ${describe(error)}`),
        );
    await world.run(world.nowMs + config.callTimeoutMs + config.ttlMs * 4 + 1_000, go);
  }
  if (stage.violation !== null) return;
  const alive = new Set(stage.processes.map(({ name }) => name));
  const open = log.calls.find(
    (call) => call.endedMs === null && alive.has(call.process) && call.request.op !== "get",
  );
  if (open !== undefined)
    stage.fail(
      "every-call-ends",
      `${open.process} still waits for its ${open.request.op} of ${Math.round(open.startedMs)} ms`,
    );
  for (const { name, env } of [...stage.processes, ...stage.backends]) {
    if (env.pendingTimers > 0) stage.fail("no-leaks", `${name} left ${env.pendingTimers} timers behind`);
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
