import { describe, expect, it } from "vitest";
import { runFull } from "../src/index.ts";
import { SimulatedEnv } from "../src/world/env.ts";
import { Machine } from "../src/world/machine.ts";
import { Choices } from "../src/world/random.ts";
import { withoutRealWorld } from "../src/world/trap.ts";
import { World } from "../src/world/world.ts";

const START = { monotonicMs: 1_000, wallMs: 50_000, rate: 1 };

function smallWorld(seed = 1): { world: World; machine: Machine; env: SimulatedEnv } {
  const world = new World(new Choices(seed), { record: "no" });
  const machine = new Machine(world, "n1", START);
  const env = new SimulatedEnv({ world, machine, random: world.choices.stream("n1"), timerLatenessMs: 0 });
  return { world, machine, env };
}

const goOn = (): "go on" => "go on";

describe("the simulated world", () => {
  it("plays the same seed the same way, event for event", async () => {
    for (const seed of [3, 40, 115]) {
      const [first, second] = [await runFull({ seed }), await runFull({ seed })];
      expect(second.hash).toBe(first.hash);
      expect(second.events).toBe(first.events);
    }
    expect((await runFull({ seed: 4 })).hash).not.toBe((await runFull({ seed: 5 })).hash);
  });

  it("lets every promise settle between two events, however long its chain", async () => {
    const { world } = smallWorld();
    let reached = 0;
    world.schedule(1, null, "chain", () => {
      void (async () => {
        for (let hop = 0; hop < 5_000; hop += 1) await Promise.resolve();
        reached = world.nowMs;
      })();
    });
    world.schedule(2, null, "later", () => undefined);
    await world.run(10, goOn);
    expect(reached).toBe(1);
  });

  it("draws the order of events that fall on the same instant from the seed", async () => {
    const orders = new Set<string>();
    for (let seed = 1; seed <= 20; seed += 1) {
      const { world } = smallWorld(seed);
      let order = "";
      for (const name of ["a", "b", "c"])
        world.schedule(5, null, name, () => {
          order += name;
        });
      await world.run(10, goOn);
      orders.add(order);
    }
    expect(orders.size).toBeGreaterThan(3);
  });

  it("throws when code inside a run reaches for the real clock, timers or randomness", async () => {
    await withoutRealWorld(async () => {
      expect(() => Date.now()).toThrow("simulated run");
      expect(() => Math.random()).toThrow("simulated run");
      expect(() => setTimeout(() => undefined, 1)).toThrow("simulated run");
      expect(() => performance.now()).toThrow("simulated run");
    });
    expect(Date.now()).toBeGreaterThan(0);
  });
});

describe("a simulated machine", () => {
  it("keeps its timers while it sleeps: the monotonic clock stands, the wall clock moves", async () => {
    const { world, machine, env } = smallWorld();
    let firedAt = 0;
    env.timer(100, () => {
      firedAt = world.nowMs;
    });
    world.schedule(50, null, "sleep", () => machine.suspend(1_000));
    await world.run(2_000, goOn);
    expect(firedAt).toBeCloseTo(1_100, 3);
    expect(env.monotonicMs()).toBeCloseTo(1_000 + 1_000, 3);
    expect(env.wallMs()).toBe(52_000);
  });

  it("fires what fell due during a pause in a burst at its end, and not what was cancelled meanwhile", async () => {
    const { world, machine, env } = smallWorld();
    const fired: string[] = [];
    env.timer(100, () => {
      fired.push("first");
      second.cancel();
      third.cancel();
    });
    const second = env.timer(100, () => fired.push("second"));
    const third = env.timer(5_000, () => fired.push("third"));
    world.schedule(50, null, "pause", () => machine.pause(1_000));
    await world.run(9_000, goOn);
    expect(fired.includes("third")).toBe(false);
    expect(fired.at(-1)).toBe("first");
    expect(env.pendingTimers).toBe(0);
  });

  it("never runs anything of a process that is dead", async () => {
    const { world, env } = smallWorld();
    let ran = false;
    env.timer(10, () => {
      ran = true;
    });
    env.kill();
    env.defer(() => {
      ran = true;
    });
    await world.run(100, goOn);
    expect(ran).toBe(false);
  });
});
