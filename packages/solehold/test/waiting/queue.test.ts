/** Waiting for a turn: first come, first served; limits, handoffs, drains, and a store in trouble. */
import { describe, expect, it } from "vitest";
import { settle } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { heldWorld, key, World } from "./world.ts";

describe("waiting for a turn", () => {
  it("serves first come, first served, as each gives the lease back", async () => {
    const { world, owner, waiting } = await heldWorld(["a", "b", "c", "d"]);
    await world.release(owner);
    for (const caller of waiting) await world.release(caller);
    expect(world.granted).toEqual(["owner", "a", "b", "c", "d"]);
    expect(waiting.map(({ state }) => state)).toEqual(["granted 2", "granted 3", "granted 4", "granted 5"]);
    expect(world.queue.size).toBe(0);
  });

  it("asks once per turn: nobody behind the first costs the store or the audit anything", async () => {
    const { world, owner } = await heldWorld(["a", "b", "c", "d"]);
    await world.release(owner);
    const actions = (await world.audit.query()).map(
      ({ action, allowed, holder }) => `${action} ${holder} ${allowed}`,
    );
    expect(actions).toEqual(["grant owner true", "grant a false", "release owner true", "grant a true"]);
  });

  it("does not ask again when a notification repeats what a decision already showed", async () => {
    const world = new World();
    const owner = world.ask("owner");
    await settle();
    const waiting = ["a", "b"].map((name) => world.ask(name));
    await settle();
    await world.release(owner);
    await settle();
    await settle();
    expect(waiting.map(({ state }) => state)).toEqual(["granted 2", "waiting"]);
    const denied = (await world.audit.query()).filter(({ allowed }) => !allowed);
    expect(denied.map(({ holder }) => holder)).toEqual(["a"]);
  });

  it("hands over when a lease simply ends, without a notification", async () => {
    const { world, waiting } = await heldWorld(["a", "b"]);
    await world.env.advance(10_050);
    expect(world.granted).toEqual(["owner", "a"]);
    await world.env.advance(10_050);
    expect(world.granted).toEqual(["owner", "a", "b"]);
    expect(waiting.map(({ state }) => state)).toEqual(["granted 2", "granted 3"]);
  });

  it("learns of releases by other processes through the store", async () => {
    const world = new World();
    const owner = world.ask("owner", { ttlMs: 3_600_000 });
    await settle();
    const waiter = world.ask("a");
    await settle();
    const elsewhere = new StoreExecutor({
      store: world.store,
      env: world.env,
      policy: { generations: "count" },
    });
    await elsewhere.execute({ op: "release", key, holder: "owner", token: owner.token });
    await settle();
    await settle();
    expect(waiter.state).toBe("granted 2");
  });

  it("finds out by itself when a notification was lost, without filling the audit", async () => {
    const { world, owner, waiting } = await heldWorld(["a"]);
    const elsewhere = new StoreExecutor({
      store: world.store,
      env: world.env,
      policy: { generations: "count" },
    });
    await elsewhere.execute({ op: "renew", key, holder: "owner", token: owner.token, ttlMs: 3_600_000 });
    await world.env.advance(40_000);
    expect(waiting[0]?.state).toBe("waiting");
    const denials = (await world.audit.query()).filter(({ allowed }) => !allowed);
    expect(denials.length).toBe(1);
    await elsewhere.execute({ op: "release", key, holder: "owner", token: owner.token });
    await world.env.advance(10_000);
    expect(waiting[0]?.state).toBe("granted 2");
  });

  it("answers when the wait is over, with who has the lease and until when", async () => {
    const world = new World();
    world.ask("owner", { ttlMs: 50_000 });
    await settle();
    // The end of the owner's lease in the service's index, and the time limits of the store's reads and writes.
    await world.holder();
    const timers = world.env.pendingTimers;
    const first = world.ask("a", { waitMs: 1_000 });
    const second = world.ask("b", { waitMs: 2_000 });
    await world.env.advance(1_000);
    expect([first.state, second.state]).toEqual(["LEASE_HELD_BY_OTHER", "waiting"]);
    await world.env.advance(1_000);
    expect(second.state).toBe("LEASE_HELD_BY_OTHER");
    expect(world.queue.size).toBe(0);
    expect(world.env.pendingTimers).toBeLessThanOrEqual(timers);
    const denied = (await world.audit.query()).filter(({ allowed }) => !allowed);
    expect(denied.map(({ holder, reason }) => `${holder} ${reason}`).slice(-2)).toEqual([
      "a LEASE_HELD_BY_OTHER",
      "b LEASE_HELD_BY_OTHER",
    ]);
  });

  it("lets the successor of a handoff pass those who came before it", async () => {
    const { world, owner, waiting } = await heldWorld(["a", "b", "heir", "c"]);
    const outcome = await world.queue.execute({
      op: "handoff",
      key,
      holder: "owner",
      token: owner.token,
      successor: "heir",
      withinMs: 5_000,
    });
    expect(outcome.kind).toBe("applied");
    await settle();
    expect(waiting.map(({ state }) => state)).toEqual(["waiting", "waiting", "granted 2", "waiting"]);
    const heir = waiting[2];
    if (heir !== undefined) await world.release(heir);
    expect(world.granted).toEqual(["owner", "heir", "a"]);
  });

  it("gives a handed-over lease to the queue when the successor does not come in time", async () => {
    const { world, owner, waiting } = await heldWorld(["a"]);
    const handoff = { key, holder: "owner", token: owner.token, successor: "nobody", withinMs: 5_000 };
    const outcome = await world.queue.execute({ ...handoff, op: "handoff" });
    expect(outcome.kind).toBe("applied");
    await world.env.advance(4_000);
    expect(waiting[0]?.state).toBe("waiting");
    await world.env.advance(1_100);
    expect(waiting[0]?.state).toBe("granted 2");
  });

  it("tells a request that can never be granted so at once, not when its turn comes", async () => {
    const { world } = await heldWorld(["a"]);
    const hopeless = world.ask("b", { ttlMs: 999_999_999 });
    await settle();
    expect(hopeless.state).toBe("LEASE_TTL_OUT_OF_BOUNDS");
  });

  it("lets the first in the queue ask before somebody who does not wait", async () => {
    const { world, waiting } = await heldWorld(["a"]);
    world.env.pause(10_000); // the owner's lease is over, and no timer has fired yet
    const pushy = world.ask("pushy", { waitMs: 0 });
    await settle();
    expect(waiting[0]?.state).toBe("granted 2");
    expect(pushy.state).toBe("LEASE_HELD_BY_OTHER");
  });

  it("refuses a wait beyond the limit and a waiter too many", async () => {
    const world = new World({ maxWaiters: 2, maxWaitMs: 5_000 });
    world.ask("owner", { waitMs: 0 });
    await settle();
    const patient = world.ask("p", { waitMs: 5_001 });
    const [first, second, third] = ["a", "b", "c"].map((name) => world.ask(name, { waitMs: 5_000 }));
    await settle();
    expect(patient.state).toBe("INPUT_SCHEMA_INVALID");
    expect([first?.state, second?.state, third?.state]).toEqual(["waiting", "waiting", "too-many-waiters"]);
  });

  it("shows the queue: positions, the holder, and how long it may take", async () => {
    const { world } = await heldWorld(["a", "b"]);
    await world.env.advance(1_000);
    const view = world.queue.view(key);
    expect(view.waiting).toBe(2);
    expect(view.heldBy).toBe("owner");
    expect(view.waiters).toEqual([
      { position: 0, holder: "a", waitedMs: 1_000, expectedWaitMs: 9_000 },
      { position: 1, holder: "b", waitedMs: 1_000, expectedWaitMs: 19_000 },
    ]);
  });

  it("tells a waiter who holds the key, since when, and its position whenever that changes", async () => {
    const { world, owner } = await heldWorld(["a"]);
    const shown: unknown[] = [];
    const wait = { waitMs: 60_000, onWaiting: (details: unknown) => void shown.push(details) };
    const waiting = world.queue.execute({ op: "acquire", key, holder: "b" }, { wait });
    await settle();
    const view = await world.service.read(key);
    const since = { sinceMs: view?.grantedAtMs, heldUntilMs: view?.expiresAtMs };
    expect(shown).toEqual([{ holder: "owner", position: 1, ...since }]);
    await world.release(owner);
    expect(shown).toMatchObject([{ position: 1 }, { holder: "a", position: 0 }]);
    await world.env.advance(10_050);
    expect((await waiting).kind).toBe("applied");
    expect(shown).toHaveLength(2);
  });

  it("tells the first waiter of a foreign lease once, when it knows since when that is held", async () => {
    const world = new World();
    const elsewhere = new StoreExecutor({ store: world.store, env: world.env });
    const held = await elsewhere.execute({ op: "acquire", key, holder: "other", ttlMs: 5_000 });
    const sinceMs = held.kind === "applied" ? held.decision.lease.grantedAtMs : null;
    const shown: unknown[] = [];
    const wait = { waitMs: 1_000, onWaiting: (details: unknown) => void shown.push(details) };
    void world.queue.execute({ op: "acquire", key, holder: "b" }, { wait });
    await world.env.advance(900);
    expect(shown).toMatchObject([{ holder: "other", position: 0, sinceMs }]);
  });

  it("sends everybody elsewhere when the server drains, and takes nobody more", async () => {
    const { world, waiting } = await heldWorld(["a", "b", "c"]);
    world.queue.drain();
    await settle();
    expect(waiting.map(({ state }) => state)).toEqual(["draining", "draining", "draining"]);
    const late = world.ask("late");
    await settle();
    expect(late.state).toBe("draining");
    expect(world.queue.size).toBe(0);
  });
});

describe("a store in trouble", () => {
  it("lets a waiter wait through a short outage", async () => {
    const { world, owner, waiting } = await heldWorld(["a"]);
    await world.releaseElsewhere(owner);
    world.reach = "down";
    await world.env.advance(2_000);
    expect(waiting[0]?.state).toBe("waiting");
    world.reach = "up";
    await world.env.advance(2_000);
    expect(waiting[0]?.state).toBe("granted 2");
  });

  it("answers with what is not known when the outage outlasts the wait", async () => {
    const { world } = await heldWorld([]);
    const waiter = world.ask("a", { waitMs: 3_000 });
    await settle();
    world.reach = "down";
    await world.env.advance(5_000);
    expect(["unknown", "not-applied"]).toContain(waiter.state);
    expect(world.queue.size).toBe(0);
  });
});
