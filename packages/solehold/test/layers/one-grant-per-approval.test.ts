/** One approval, one grant: over lost answers, repeats, other servers, and what ends a lease. */
import { describe, expect, it } from "vitest";
import type { LeaseService } from "../../src/layers/index.ts";
import { type ConditionalWrite, decorateStore, type MemoryStore, StoreError } from "../../src/store/index.ts";
import { applied, refused, runUntilSettled, unsettled } from "../executor/helpers.ts";
import { ACQUIRE, GUARDED, guardedWorld, MINUTE_MS, RELEASE, REQUEST, type World } from "./guarded-world.ts";

/** The grant lands, and nobody learns of it. */
async function unknownGrant({ env, faults, service }: World, approval: ReturnType<World["signed"]>) {
  // The first write marks the approvals as used.
  faults.writeFaults = [null, "reply-lost"];
  faults.readFaults = [null, ...Array.from({ length: 1_000 }, () => "failed" as const)];
  const asked = service.execute({ ...ACQUIRE, approval, timeoutMs: 1_000 });
  expect(unsettled(await runUntilSettled(env, asked)).outcome).toBe("unknown");
  faults.readFaults = [];
}

describe("an approval leads to one grant", () => {
  it("and not to another attempt's after an outcome that is unknown", async () => {
    const world = guardedWorld();
    const approval = world.signed();
    await unknownGrant(world, approval);
    applied(await world.rival.execute(RELEASE));
    const again = refused(await world.rival.execute({ ...ACQUIRE, token: "another", approval }));
    expect(again.decision.reason).toBe("QUORUM_NOT_MET");
  });

  it("which the same attempt finds again after an outcome that is unknown", async () => {
    const world = guardedWorld();
    const approval = world.signed();
    await unknownGrant(world, approval);
    const before = await world.rival.read(GUARDED);
    const again = applied(await world.service.execute({ ...ACQUIRE, approval }));
    expect(again.decision.lease.generation).toBe(before?.generation);
  });

  it.each([
    ["a new key", 0],
    ["a key that was held before", 1],
  ])(
    "which the same attempt still gets when the first try on %s never reached the store",
    async (_on, before) => {
      const world = guardedWorld();
      for (let grant = 0; grant < before; grant += 1) {
        const earlier = {
          ...ACQUIRE,
          token: "earlier",
          approval: world.signed(REQUEST, "nonce-of-the-earlier"),
        };
        applied(await world.service.execute(earlier));
        applied(await world.service.execute({ ...RELEASE, token: "earlier" }));
      }
      const approval = world.signed();
      world.faults.writeFaults = [null, "frozen"];
      world.faults.readFaults = [null, ...Array.from({ length: 1_000 }, () => "failed" as const)];
      const asked = world.service.execute({ ...ACQUIRE, approval, timeoutMs: 1_000 });
      unsettled(await runUntilSettled(world.env, asked));
      world.faults.readFaults = [];
      applied(await world.service.execute({ ...ACQUIRE, approval }));
      applied(await world.service.execute(RELEASE));
      expect(refused(await world.service.execute({ ...ACQUIRE, approval })).decision.reason).toBe(
        "QUORUM_NOT_MET",
      );
    },
  );

  it("and is free again when that certainly did not happen", async () => {
    const { faults, service, signed } = guardedWorld();
    const approval = signed();
    faults.writeFaults = [null, "failed-before"];
    expect(unsettled(await service.execute({ ...ACQUIRE, approval })).outcome).toBe("not-applied");
    applied(await service.execute({ ...ACQUIRE, token: "another", approval }));
  });

  const ENDED: readonly [string, (world: World) => Promise<unknown>][] = [
    ["was released", ({ service }) => service.execute(RELEASE)],
    ["expired", ({ env }) => env.advance(MINUTE_MS)],
    [
      "was released, and another held the key since",
      async ({ service, signed }) => {
        await service.execute(RELEASE);
        const rival = { key: GUARDED, holder: "rival", ttlMs: MINUTE_MS };
        const approval = signed(rival, "nonce-of-the-rival");
        const { token } = applied(await service.execute({ op: "acquire", ...rival, approval }));
        await service.execute({ op: "release", ...rival, token });
      },
    ],
    [
      "was released, and its record was collected",
      async ({ env, service }) => {
        await service.execute(RELEASE);
        await env.advance(25 * 60 * MINUTE_MS);
        expect((await service.executor.collect("default")).deleted).toBe(1);
      },
    ],
  ];

  it.each(ENDED)("the same token and approval get no second one after it %s", async (_how, end) => {
    const world = guardedWorld();
    const approval = world.signed();
    applied(await world.service.execute({ ...ACQUIRE, approval }));
    await end(world);
    for (const server of [world.service, world.rival]) {
      const again = refused(await server.execute({ ...ACQUIRE, approval }));
      expect(again.decision.reason).toBe("QUORUM_NOT_MET");
      expect(again.quorum?.failures.map(({ code }) => code)).toContain("LC_APPROVAL_REPLAYED");
    }
  });

  it("nor after it was unknown, landed, and was released", async () => {
    const world = guardedWorld();
    const approval = world.signed();
    await unknownGrant(world, approval);
    applied(await world.rival.execute(RELEASE));
    const again = refused(await world.service.execute({ ...ACQUIRE, approval }));
    expect(again.decision.reason).toBe("QUORUM_NOT_MET");
  });

  it("nor where a release deletes the record", async () => {
    const { service, signed } = guardedWorld("delete");
    const approval = signed();
    applied(await service.execute({ ...ACQUIRE, approval }));
    applied(await service.execute(RELEASE));
    expect(refused(await service.execute({ ...ACQUIRE, approval })).decision.reason).toBe("QUORUM_NOT_MET");
  });

  it("which a repeat under its idempotency key finds with another token, and no other caller does", async () => {
    const { service, rival, signed } = guardedWorld();
    const approval = signed();
    const request = { op: "acquire", ...REQUEST, idempotencyKey: "order-7", approval } as const;
    const first = applied(await service.execute({ ...request, token: "first" }, { caller: "me" }));
    const again = applied(await rival.execute({ ...request, token: "second" }, { caller: "me" }));
    expect([again.token, again.decision.replayed]).toEqual([first.token, true]);
    const stolen = refused(await rival.execute({ ...request, token: "third" }, { caller: "you" }));
    expect(stolen.decision.reason).toBe("QUORUM_NOT_MET");
  });

  it("and two attempts at once get one between them", async () => {
    const { service, rival, signed } = guardedWorld();
    const approval = signed();
    const both = await Promise.all([
      service.execute({ ...ACQUIRE, approval }),
      rival.execute({ ...ACQUIRE, holder: "deployer", token: "another", approval }),
    ]);
    expect(both.map(({ kind }) => kind).sort()).toEqual(["applied", "refused"]);
  });
});

type Apply = MemoryStore["apply"];

/** A service over a store that answers the claim of approvals as `answer` says. */
function withClaims({ memory, serviceOver }: World, answer: Apply): LeaseService {
  const isClaim = ({ key, next }: ConditionalWrite): boolean =>
    key.name.startsWith("$approval/") && next !== null;
  return serviceOver(
    decorateStore(memory, {
      apply: async (writes) => (writes.some(isClaim) ? await answer(writes) : await memory.apply(writes)),
    }),
  );
}

describe("a claim of approvals", () => {
  it("of which one is unknown grants nothing, and keeps none of the others", async () => {
    const world = guardedWorld();
    const approval = world.signed();
    const cause = new StoreError("timeout", "no answer", { outcome: "unknown" });
    const service = withClaims(world, async (writes) => {
      const { storeTimeMs, results } = await world.memory.apply(writes.slice(0, 1));
      return { storeTimeMs, results: [...results, { kind: "unknown", cause }] };
    });
    expect(unsettled(await service.execute({ ...ACQUIRE, approval })).outcome).toBe("not-applied");
    expect(await world.rival.read(GUARDED)).toBeNull();
    applied(await world.rival.execute({ ...ACQUIRE, token: "another", approval }));
  });

  it("of which another attempt was quicker with one grants nothing", async () => {
    const world = guardedWorld();
    const approval = world.signed();
    const service = withClaims(world, async (writes) => {
      const theirs = writes.slice(0, 1).map((write) => ({
        ...write,
        next: write.next && { ...write.next, metadata: { attempt: "another" } },
      }));
      await world.memory.apply(theirs);
      return await world.memory.apply(writes);
    });
    const outcome = refused(await service.execute({ ...ACQUIRE, approval }));
    expect(outcome).toMatchObject({ decision: { reason: "QUORUM_NOT_MET" }, quorum: { passed: false } });
    expect(await world.rival.read(GUARDED)).toBeNull();
  });

  it("that met a use which was taken back a moment later is no claim: nothing would be marked as used", async () => {
    const world = guardedWorld();
    const approval = world.signed();
    const service = withClaims(world, async (writes) => ({
      storeTimeMs: world.memory.now(),
      results: writes.map(() => ({ kind: "conflict", current: { kind: "absent" } })),
    }));
    expect(refused(await service.execute({ ...ACQUIRE, approval })).decision.reason).toBe("QUORUM_NOT_MET");
  });
});

describe("a lease under an approval rule", () => {
  async function held() {
    const world = guardedWorld();
    applied(await world.service.execute({ ...ACQUIRE, approval: world.signed() }));
    const renew = { ...RELEASE, op: "renew" } as const;
    return { ...world, renew };
  }

  it("is renewed for the ttl that was approved, and for no longer", async () => {
    const { service, renew } = await held();
    applied(await service.execute({ ...renew, ttlMs: MINUTE_MS }));
    applied(await service.execute({ ...renew, ttlMs: 1_000 }));
    const longer = refused(await service.execute({ ...renew, ttlMs: MINUTE_MS + 1 }));
    expect(longer.decision.reason).toBe("LEASE_TTL_OUT_OF_BOUNDS");
    applied(await service.execute({ ...renew, ttlMs: MINUTE_MS }));
  });

  it("is refused a renewal above the rule's longest ttl, naming the field and the bounds", async () => {
    const { service, renew } = await held();
    const { decision } = refused(await service.execute({ ...renew, ttlMs: 5 * MINUTE_MS + 1 }));
    expect(decision).toMatchObject({ kind: "refused", field: "ttlMs", message: /to 300000 ms/ });
  });

  it("is not given to the next waiter by somebody else's release: nobody checked that waiter's approvals", async () => {
    const { service } = await held();
    const request = { ...ACQUIRE, holder: "waiter", token: "token-of-the-waiter" };
    const released = applied(await service.execute({ ...RELEASE, next: { request, context: {} } }));
    expect(released.next).toBeUndefined();
    expect(await service.read(GUARDED)).toMatchObject({ state: "released" });
  });
});

describe("an operator's command under an approval rule", () => {
  async function revoked() {
    const world = guardedWorld();
    applied(await world.service.execute({ ...ACQUIRE, approval: world.signed() }));
    const approval = world.signedFor({ action: "revoke", key: GUARDED }, "nonce-of-the-revoke");
    const revoke = { op: "revoke", key: GUARDED, idempotencyKey: "ticket-7", approval } as const;
    applied(await world.service.execute(revoke));
    return { ...world, revoke };
  }

  it("finds itself done when its answer was lost and it is repeated under its key", async () => {
    const { rival, revoke } = await revoked();
    expect(applied(await rival.execute(revoke)).decision.replayed).toBe(true);
    const { idempotencyKey: _key, ...anew } = revoke;
    expect(refused(await rival.execute(anew)).decision.reason).toBe("QUORUM_NOT_MET");
  });

  it("does not strike the next holder when it is repeated", async () => {
    const { service, rival, revoke, signed } = await revoked();
    applied(await service.execute(RELEASE));
    const approval = signed(REQUEST, "nonce-of-the-next");
    applied(await service.execute({ ...ACQUIRE, token: "token-of-the-next", approval }));
    expect(refused(await rival.execute(revoke)).decision.reason).toBe("LEASE_GENERATION_STALE");
    expect(await rival.read(GUARDED)).toMatchObject({ state: "held" });
  });
});

describe("the record of an approval that was used", () => {
  const DAY_MS = 24 * 60 * MINUTE_MS;

  it("stays while the approval could be presented, is collected a day later, and the approval is refused all the same", async () => {
    const { env, memory, service, signed } = guardedWorld();
    const approval = signed();
    applied(await service.execute({ ...ACQUIRE, approval }));
    applied(await service.execute(RELEASE));
    const uses = async () =>
      (await memory.list({ tenant: "default", prefix: "$", limit: 10 })).records.length;
    expect(await uses()).toBe(2);
    // It is valid for two days, and the lease's own record is kept for one.
    await env.advance(3 * DAY_MS - 2 * MINUTE_MS);
    await service.executor.collect("default");
    expect(await service.executor.read(GUARDED)).toBeNull();
    expect(await uses()).toBe(2);
    await env.advance(3 * MINUTE_MS);
    await service.executor.collect("default");
    expect(await uses()).toBe(0);
    const again = refused(await service.execute({ ...ACQUIRE, token: "another", approval }));
    expect(again.decision.reason).toBe("QUORUM_NOT_MET");
  });
});
