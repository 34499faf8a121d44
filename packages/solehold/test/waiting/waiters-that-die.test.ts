/** Waiters that die, at every step: they hold up nobody, and what they were granted is released unless a repeat finds it. */

import { describe, expect, it } from "vitest";
import { settle } from "../../src/env/index.ts";
import { asUnsettled } from "../../src/waiting/outcomes.ts";
import { releaseOfUnclaimed } from "../../src/waiting/release-unclaimed.ts";
import { heldWorld, key, World } from "./world.ts";

/** A waiter whose turn has just come: its attempt is at the store, and goes on with `thaw`. */
async function grantedJustNow(options: Parameters<World["ask"]>[1] = {}) {
  const world = new World();
  const owner = world.ask("owner");
  await settle();
  const waiter = world.ask("a", options);
  await settle();
  await world.releaseElsewhere(owner);
  const thaw = world.freeze();
  await settle();
  return { world, waiter, thaw };
}

describe("waiters that die", () => {
  const names = ["a", "b", "c", "d", "e"];

  it.each(names)("never hold up the others: %s dies in the queue", async (dead) => {
    const { world, owner, waiting } = await heldWorld(names);
    waiting.find(({ holder }) => holder === dead)?.connection.drop();
    await settle();
    await world.release(owner);
    for (const caller of waiting) await world.release(caller);
    expect(world.granted).toEqual(["owner", ...names.filter((name) => name !== dead)]);
  });

  it.each(names)("never hold up the others: %s dies while the lease changes hands", async (dead) => {
    const { world, owner, waiting } = await heldWorld(names);
    const chain = [owner, ...waiting];
    for (const [index, caller] of chain.entries()) {
      if (caller.holder === dead) continue;
      const thaw = world.freeze();
      const releasing = world.release(caller);
      await settle();
      // Its grant travels with the release at this moment.
      if (chain[index + 1]?.holder === dead) chain[index + 1]?.connection.drop();
      thaw();
      await releasing;
      await settle();
    }
    expect(world.granted).toEqual(["owner", ...names.filter((name) => name !== dead)]);
    expect(await world.holder()).toBe(null);
  });

  it("never hold up the others: one dies while its own attempt is under way", async () => {
    const { world, waiter, thaw } = await grantedJustNow();
    const behind = world.ask("b");
    waiter.connection.drop();
    thaw();
    await settle();
    expect([waiter.state, behind.state]).toEqual(["cancelled", "granted 3"]);
  });

  it("have what was granted to them released at once", async () => {
    const { world, waiter, thaw } = await grantedJustNow();
    waiter.connection.drop();
    thaw();
    await settle();
    expect(await world.holder()).toBe(null);
    const actions = (await world.audit.query()).map(({ action, holder }) => `${action} ${holder}`);
    expect(actions.slice(-2)).toEqual(["grant a", "release a"]);
  });

  it("releases what was granted to somebody who chose the token and has gone; its repeat is granted anew", async () => {
    const { world, waiter, thaw } = await grantedJustNow({ repeatable: "by token" });
    waiter.connection.drop();
    const again = world.ask("a", { repeatable: "by token" }); // the same token, on a new connection
    thaw();
    await settle();
    expect(again.state).toBe("granted 3");
    await world.env.advance(9_000);
    expect(await world.holder()).toBe("a");
  });

  it("does not release what a repeat with the same token has found first: two could believe", async () => {
    const { service } = new World();
    const request = { key, holder: "a", token: "chosen", ttlMs: 10_000 };
    const first = await service.execute({ ...request, op: "acquire" });
    await service.execute({ ...request, op: "acquire" });
    if (first.kind !== "applied") throw new Error("it was free");
    const { ttlMs: _ttlMs, ...owner } = request;
    const onlyNonce = first.decision.lease.nonce;
    const released = await service.execute({ op: "release", ...owner, onlyNonce });
    expect(released).toMatchObject({ kind: "refused", decision: { reason: "LEASE_NOT_FOUND" } });
    expect(await service.read(key)).toMatchObject({ holder: "a", live: true, generation: 1n });
  });

  it("releases every slot that an attempt of unknown fate may have been granted", () => {
    const gone = { isGone: () => true, isCancelled: () => false, onGone: () => () => undefined };
    const request = { op: "acquire", key, holder: "a", token: "drawn", slots: 3 } as const;
    const unclaimed = { request, context: {}, recipient: gone, repeatable: "no" } as const;
    const releases = releaseOfUnclaimed(unclaimed, asUnsettled("no answer"));
    expect(releases.map((release) => release.key.name)).toEqual(["job", "job#slot/1", "job#slot/2"]);
    expect(releaseOfUnclaimed({ ...unclaimed, repeatable: "by token" }, asUnsettled("no answer"))).toEqual(
      [],
    );
  });

  it("does not release a grant that its repeat has found and renewed", async () => {
    const { service } = new World();
    const request = { op: "acquire", key, holder: "a", token: "chosen", ttlMs: 10_000 } as const;
    await service.execute(request);
    const found = await service.execute(request);
    const gone = { isGone: () => true, isCancelled: () => false, onGone: () => () => undefined };
    const unclaimed = { request, context: {}, recipient: gone, repeatable: "by token" } as const;
    expect(found).toMatchObject({ kind: "applied", decision: { replayed: false, lease: { renewals: 1 } } });
    expect(releaseOfUnclaimed(unclaimed, found)).toEqual([]);
  });

  it("keeps what was granted under an idempotency key: a repeat finds it without a trace", async () => {
    const { world, waiter, thaw } = await grantedJustNow({ repeatable: "by key", idempotencyKey: "once" });
    waiter.connection.drop();
    thaw();
    await settle();
    expect(await world.holder()).toBe("a");
  });

  it("releases even a repeatable grant when the caller said that it does not want it any more", async () => {
    const { world, waiter, thaw } = await grantedJustNow({ repeatable: "by token" });
    waiter.connection.cancel();
    thaw();
    await settle();
    expect(await world.holder()).toBe(null);
  });
});
