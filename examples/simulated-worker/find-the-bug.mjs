// A worker that acts while it leads, simulated: two processes, one lease, pauses drawn by a seed. The worker below
// remembers in a boolean that it leads; some seed shows a deposed leader that still acts. The fixed worker asks its lease.
//   node examples/simulated-worker/find-the-bug.mjs [fixed]
import { Choices, Machine, SimulatedEnv, World } from "@solehold/simulator";
import { Leases, MemoryStore, StoreExecutor } from "solehold";

const isFixed = process.argv.includes("fixed");

/** The code under test: `leads` is set by the election and cleared by the signal, as many programs do it. */
function startWorker(leases, env, act) {
  let leads = false;
  let term = null;
  const work = () => {
    if (isFixed ? term?.isHeld() : leads) act(term.fence);
    env.timer(20, work);
  };
  work();
  void (async () => {
    for await (term of leases.elect("worker", { ttl: 300 })) {
      leads = true;
      await new Promise((lost) => {
        if (term.signal.aborted) lost();
        else term.signal.addEventListener("abort", lost, { once: true });
      });
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
  let newest = 0n;
  let bug = null;
  envs.forEach((env, index) => {
    const executor = new StoreExecutor({ store, env });
    const leases = new Leases({ executor, env, holder: machines[index].name });
    startWorker(leases, env, (fence) => {
      if (fence < newest)
        bug = `worker ${machines[index].name} acted under term ${fence} after term ${newest}`;
      else newest = fence;
    });
    for (let at = 0; at < 5_000; at += random.exponential(1_500))
      world.schedule(at, null, "pause", () => machines[index].pause(random.fraction() * 900));
  });
  await world.run(5_000, () => (bug === null ? "go on" : "stop"));
  if (bug !== null) {
    console.log(`seed ${seed}, ${world.nowMs.toFixed(0)} ms: ${bug}`);
    process.exit(isFixed ? 1 : 0);
  }
}
console.log("no seed showed a deposed leader that acts");
process.exitCode = isFixed ? 0 : 1;
