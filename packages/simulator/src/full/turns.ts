/**
 * Nobody starves: all processes take turns at one key as fast as they can, one of them from far away. While it waits,
 * only so many turns of others may pass. Watched long after healing, where the store announces changes (without that the
 * order between processes is left to chance) and clocks keep their bounds: a process asks for the key to be kept for a few
 * of its round trips, and where its clock runs at a third of the others' that may always be too short.
 */
import { delay } from "solehold/internal";
import { RandomStream } from "../world/random.ts";
import type { Process } from "./process.ts";
import type { SimulatedCluster } from "./simulated-cluster.ts";

/** Until others have noticed that somebody waits, who never had to wait themselves. */
const MOST_AT_FIRST = 2_000;
const MOST_LATER = 100;
const TURNS = 6;
/** The first turns show how soon it comes back. */
const FIRST_TURNS = 3;

export async function nobodyStarves(cluster: SimulatedCluster, go: () => "go on" | "stop"): Promise<void> {
  const { world, config, network, processes } = cluster;
  const far = processes.at(-1);
  const isDrawn = new RandomStream(config.seed, "turns").chance(0.25);
  const isPromised = config.watch && config.clocks === "bounded" && cluster.servers === null;
  if (!isDrawn || !isPromised || far === undefined || processes.length < 2) return;
  network.distance(far.machine, Math.min(config.delayMs * 20, config.ttlMs / 40));
  const others = { turns: 0 };
  let running = processes.length;
  let isOver = false;
  const ended = (): void => {
    running -= 1;
  };
  const failed = (process: Process) => (error: unknown) => {
    ended();
    cluster.fail("liveness", `${process.name} lost its turn after healing: ${String(error)}`);
  };
  for (const process of processes) {
    if (process === far) continue;
    const loop = async (): Promise<void> => {
      while (!isOver) {
        await oneTurn(cluster, process);
        others.turns += 1;
      }
    };
    loop().then(ended, failed(process));
  }
  const farLoop = async (): Promise<void> => {
    for (let turn = 0; turn < TURNS && cluster.violation === null; turn += 1) {
      const before = others.turns;
      const most = cluster.mostTurns ?? (turn < FIRST_TURNS ? MOST_AT_FIRST : MOST_LATER);
      const watching = watch(cluster, far, () => others.turns - before > most, most);
      await oneTurn(cluster, far);
      watching.stop();
    }
    isOver = true;
  };
  farLoop().then(ended, failed(far));
  const limitMs = world.nowMs + config.ttlMs * 100 + 120_000;
  await world.run(limitMs, () => (running === 0 ? "stop" : go()));
  isOver = true;
  network.distance(far.machine, 0);
  if (running > 0) cluster.fail("liveness", "processes that took turns did not come to an end");
}

async function oneTurn({ config }: SimulatedCluster, process: Process): Promise<void> {
  const lease = await process.leases.acquire("key1", {
    ttl: config.ttlMs,
    wait: "forever",
    autoRenew: false,
  });
  await delay(process.env, config.delayMs);
  await lease.release();
}

function watch(
  cluster: SimulatedCluster,
  far: Process,
  isStarving: () => boolean,
  most: number,
): { stop(): void } {
  let isOn = true;
  const look = (): void => {
    if (!isOn || cluster.violation !== null) return;
    if (isStarving()) cluster.fail("starvation", `${far.name} waited while others had ${most} turns`);
    else
      cluster.world.schedule(
        cluster.world.nowMs + cluster.config.delayMs * 10,
        far.machine,
        "look at turns",
        look,
      );
  };
  look();
  return {
    stop: () => {
      isOn = false;
    },
  };
}
