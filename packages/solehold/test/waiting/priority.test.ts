/** Priorities among those who wait: in one process, between processes, and how a low one still has its turn. */
import { describe, expect, it } from "vitest";
import { settle } from "../../src/env/index.ts";
import type { Leases } from "../../src/index.ts";
import { placeOf } from "../../src/waiting/precedence.ts";
import { type ClientWorld, clientWorld } from "../client/helpers.ts";

/** Who got the lease, in order. Each keeps it for a moment. */
function line(
  world: ClientWorld,
  heldMs = 10,
): {
  readonly served: string[];
  ask(name: string, priority?: number, from?: Leases): Promise<void>;
} {
  const served: string[] = [];
  return {
    served,
    ask: async (name, priority, from = world.leases) => {
      const options = { wait: "10m", holder: name, ...(priority === undefined ? {} : { priority }) } as const;
      void from.acquire("job", options).then(async (lease) => {
        served.push(name);
        world.env.timer(heldMs, () => void lease.release());
      });
      await world.env.advance(1);
    },
  };
}

describe("among waiters of one process", () => {
  it("the higher priority goes first, and who came first among equals", async () => {
    const world = clientWorld();
    const owner = await world.leases.acquire("job");
    const { served, ask } = line(world);
    for (const [name, priority] of [["a"], ["b", 1], ["c", 5], ["d", 1], ["e", 0]] as const)
      await ask(name, priority);
    await owner.release();
    await world.env.advance(1_000);
    expect(served).toEqual(["c", "b", "d", "a", "e"]);
  });

  it("shows each its position when one is let in ahead of it", async () => {
    const world = clientWorld();
    await world.leases.acquire("job");
    const positions: number[] = [];
    void world.leases
      .acquire("job", { wait: "10m", onWaiting: ({ position }) => positions.push(position) })
      .catch(() => undefined);
    await world.env.advance(10);
    await line(world).ask("preferred", 1);
    expect(positions).toEqual([0, 1]);
  });

  it("who has waited for 30 s is passed by nobody any more", async () => {
    const world = clientWorld();
    const owner = await world.leases.acquire("job");
    const { served, ask } = line(world);
    await ask("patient");
    await world.env.advance(29_000);
    await ask("in time", 9);
    await world.env.advance(2_000);
    await ask("late", 9);
    await owner.release();
    await world.env.advance(1_000);
    expect(served).toEqual(["in time", "patient", "late"]);
  });

  it("a stream of preferred ones does not starve the other", async () => {
    const world = clientWorld();
    const owner = await world.leases.acquire("job");
    const { served, ask } = line(world, 100);
    await ask("patient");
    await ask("preferred", 9);
    await ask("preferred", 9);
    await owner.release();
    for (let turn = 0; turn < 450; turn += 1) {
      await ask("preferred", 9);
      await world.env.advance(99);
    }
    // There was always a preferred one waiting: 30 s of them went first, and then no more.
    expect(served.indexOf("patient")).toBeGreaterThan(250);
  });
});

describe("between processes", () => {
  it("the higher priority goes first, whoever came first", async () => {
    const world = clientWorld();
    const owner = await world.leases.acquire("job");
    const { served, ask } = line(world);
    await ask("far-0", 0, world.other("far-0"));
    await ask("far-1", 1, world.other("far-1"));
    await ask("far-9", 9, world.other("far-9"));
    await ask("near-5", 5);
    await world.env.advance(100);
    await owner.release();
    await world.env.advance(2_000);
    expect(served).toEqual(["far-9", "near-5", "far-1", "far-0"]);
  });

  it("a process whose waiter is joined by a preferred one moves ahead", async () => {
    const world = clientWorld();
    const owner = await world.leases.acquire("job");
    const { served, ask } = line(world);
    const both = world.other("both");
    await ask("far-1", 1, world.other("far-1"));
    await ask("low", 0, both);
    await world.env.advance(100);
    await ask("high", 9, both);
    await world.env.advance(100);
    await owner.release();
    await world.env.advance(2_000);
    expect(served[0]).toBe("high");
    expect(new Set(served)).toEqual(new Set(["high", "low", "far-1"]));
  });

  it("a stream of preferred processes, each new to the key, does not starve the other", async () => {
    const world = clientWorld();
    const owner = await world.leases.acquire("job");
    const { served, ask } = line(world, 200);
    await ask("patient", 0, world.other("patient"));
    await world.env.advance(100);
    await ask("preferred", 9, world.other("new-0"));
    await world.env.advance(100);
    await owner.release();
    for (let turn = 1; turn < 260 && !served.includes("patient"); turn += 1) {
      await ask("preferred", 9, world.other(`new-${turn}`));
      await world.env.advance(199);
    }
    // 30 s of them went first, and no more than it takes a ticket to be written again.
    expect(served.indexOf("patient")).toBeGreaterThan(120);
    expect(served.indexOf("patient")).toBeLessThan(220);
  });
});

it("a newcomer stands behind all whom it may not pass", () => {
  const young = (priority: number): { priority: number; sinceMs: number } => ({ priority, sinceMs: 99_000 });
  const old = { priority: 0, sinceMs: 0 };
  expect(placeOf(1, [young(0), old, young(0), young(0)], 100_000)).toBe(2);
  expect(placeOf(1, [young(2), young(1), young(0)], 100_000)).toBe(2);
  expect(placeOf(0, [young(0)], 100_000)).toBe(1);
});

it.each([-1, 101, 1.5, "9", Number.NaN])("a priority of %j is refused by name", async (priority) => {
  const { leases } = clientWorld();
  const asking = leases.acquire("job", { priority: priority as number });
  await expect(asking).rejects.toThrow(/priority must be a whole number from 0 to 100, got/);
  await settle();
});
