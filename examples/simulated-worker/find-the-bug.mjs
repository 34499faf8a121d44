// A worker that acts while it leads, simulated: two processes, one lease, pauses drawn by a seed. The worker below
// remembers in a boolean that it leads; some seed shows two workers acting at once. Run: node find-the-bug.mjs
import { Leases, MemoryStore, StoreLeaseManager } from "solehold";
import { Choices, Machine, SimulatedEnv, World } from "solehold/sim";

/** The code under test: `leads` is set by the election and cleared by the signal, as many programs do it. */
function startWorker(leases, env, act) {
  let leads = false;
  const work = () => {
    if (leads) act(); // The fix: ask the lease itself, `if (term?.isHeld())`.
    env.timer(20, work);
  };
  work();
  void (async () => {
    for await (const term of leases.elect("worker", { ttl: 300 })) {
      leads = true;
      await new Promise((lost) => term.signal.addEventListener("abort", lost, { once: true }));
      leads = false;
    }
  })();
}

for (let seed = 1; seed <= 200; seed += 1) {
  const world = new World(new Choices(seed), { record: "no" });
  const random = world.choices.stream("faults");
  const machines = ["a", "b"].map(
    (name) => new Machine(world, name, { monotonicMs: 0, wallMs: 1e12, rate: 1 }),
  );
  const envs = machines.map(
    (machine) =>
      new SimulatedEnv({ world, machine, random: world.choices.stream(machine.name), timerLatenessMs: 0 }),
  );
  const clock = new SimulatedEnv({
    world,
    machine: new Machine(world, "store", { monotonicMs: 0, wallMs: 1e12, rate: 1 }),
    random,
    timerLatenessMs: 0,
  });
  const store = new MemoryStore({ env: clock });
  const lastAct = new Map();
  let bug = null;
  envs.forEach((env, index) => {
    const manager = new StoreLeaseManager({ store, env });
    const leases = new Leases({ manager, env, holder: machines[index].name });
    startWorker(leases, env, () => lastAct.set(index, world.nowMs));
    for (let at = 0; at < 5_000; at += random.exponential(1_500))
      world.schedule(at, null, "pause", () => machines[index].pause(random.fraction() * 900));
  });
  await world.run(5_000, () => {
    const [a, b] = [lastAct.get(0), lastAct.get(1)];
    if (a !== undefined && b !== undefined && Math.abs(a - b) < 20) bug = world.nowMs;
    return bug === null ? "go on" : "stop";
  });
  if (bug !== null) {
    console.log(`seed ${seed}: both workers acted within 20 ms of each other at ${bug.toFixed(0)} ms`);
    process.exit(0);
  }
}
console.log("no seed showed two workers at once");
