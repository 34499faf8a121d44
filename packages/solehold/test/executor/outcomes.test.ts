import { describe, expect, it } from "vitest";
import { recordFence } from "../../src/core/index.ts";
import { applied, KEY, refused, runUntilSettled, unsettled, world } from "./helpers.ts";

describe("a reply that is lost", () => {
  it("after the write landed is recognised by its nonce: applied, one grant, no lockout", async () => {
    const { executor, store, memory } = world();
    await executor.read(KEY);
    store.writeFaults = ["reply-lost"];
    const outcome = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    expect(recordFence(outcome.decision.lease)).toBe(1n);
    const { records } = await memory.read([KEY]);
    expect(records[0]).toMatchObject({ kind: "found", record: { holder: "a", generation: 1n } });
    // The holder can act on the grant at once.
    applied(
      await executor.execute({ op: "renew", key: KEY, holder: "a", token: outcome.token, ttlMs: 5_000 }),
    );
  });

  it("reported per write as unknown is settled the same way", async () => {
    const { executor, store } = world();
    await executor.read(KEY);
    store.writeFaults = ["unknown-applied"];
    applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
  });

  it("counts the belief from before the attempt that was applied, not from when it was settled", async () => {
    const { executor, store, env } = world();
    await executor.read(KEY);
    store.writeFaults = ["reply-lost"];
    store.readFaults = ["failed", "failed", "failed"];
    const before = env.monotonicMs();
    const outcome = applied(
      await runUntilSettled(env, executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 })),
    );
    expect(env.monotonicMs()).toBeGreaterThan(before);
    expect(outcome.believedFrom.monotonicMs).toBe(before);
    expect(outcome.validForMs).toBe(5_000);
  });

  it("of a request that arrives late cannot act: writing again on the same version has made it fail", async () => {
    const { executor, store, memory } = world();
    await executor.read(KEY);
    store.writeFaults = ["delayed"];
    const outcome = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    const [late] = await store.deliverLate();
    expect(late?.results).toMatchObject([{ kind: "conflict" }]);
    const { records } = await memory.read([KEY]);
    expect(records[0]).toMatchObject({ record: { nonce: outcome.decision.lease.nonce, generation: 1n } });
  });

  it("of a release that landed is a release", async () => {
    const { executor, store } = world();
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    store.writeFaults = ["reply-lost"];
    const outcome = applied(await executor.execute({ op: "release", key: KEY, holder: "a", token }));
    expect(outcome.decision.lease.state).toBe("released");
  });

  it("of a handoff that landed is a handoff, and of a revoke that landed a revoke", async () => {
    const { executor, store } = world();
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    store.writeFaults = ["reply-lost"];
    applied(
      await executor.execute({
        op: "handoff",
        key: KEY,
        holder: "a",
        token,
        successor: "b",
        withinMs: 1_000,
      }),
    );
    applied(await executor.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 5_000 }));
    store.writeFaults = ["reply-lost"];
    applied(await executor.execute({ op: "revoke", key: KEY }));
  });

  it("of a renewal after which another took over is not read as success", async () => {
    const { executor, store, env, another } = world();
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 1_000 }));
    await env.advance(999);
    store.writeFaults = ["delayed"];
    store.readFaults = Array.from({ length: 40 }, () => "failed" as const);
    const renewing = executor.execute({ op: "renew", key: KEY, holder: "a", token, ttlMs: 1_000 });
    await env.advance(10);
    applied(await another().execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }));
    const outcome = refused(await runUntilSettled(env, renewing));
    expect(outcome.decision.reason).toBe("LEASE_HELD_BY_OTHER");
    expect((await store.deliverLate())[0]?.results).toMatchObject([{ kind: "conflict" }]);
  });
});

describe("a store that does not answer", () => {
  it("ends a command as unknown within its time, and says so", async () => {
    const { executor, store, env } = world();
    await executor.read(KEY);
    store.writeFaults = ["frozen"];
    store.readFaults = Array.from({ length: 1_000 }, () => "failed" as const);
    const outcome = unsettled(
      await runUntilSettled(
        env,
        executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000, timeoutMs: 2_000 }),
      ),
    );
    expect(outcome.outcome).toBe("unknown");
  });

  it("and refused the connection has certainly done nothing", async () => {
    const { executor, store } = world();
    await executor.read(KEY);
    store.writeFaults = ["failed-before"];
    const outcome = unsettled(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    expect(outcome.outcome).toBe("not-applied");
  });

  it("for an attempt that may have landed stays unknown although a later try certainly did nothing", async () => {
    const { executor, store } = world();
    await executor.read(KEY);
    store.writeFaults = ["delayed", "failed-before"];
    const outcome = unsettled(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    expect(outcome.outcome).toBe("unknown");
  });

  it("does not hold up others once its call has timed out", async () => {
    const { executor, store, env } = world({ callTimeoutMs: 500 });
    await executor.read(KEY);
    store.writeFaults = ["frozen"];
    const stuck = executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 });
    await env.advance(1);
    const other = executor.execute({
      op: "acquire",
      key: { tenant: "default", name: "other" },
      holder: "a",
      ttlMs: 5_000,
    });
    applied(await runUntilSettled(env, other));
    applied(await runUntilSettled(env, stuck));
  });
});

describe("the same call repeated after it ended as unknown", () => {
  it("returns the same grant and fence at once, without an idempotency key", async () => {
    const { executor, store, env } = world();
    await executor.read(KEY);
    store.writeFaults = ["reply-lost"];
    store.readFaults = Array.from({ length: 1_000 }, () => "failed" as const);
    const request = { key: KEY, holder: "a", ttlMs: 60_000, timeoutMs: 1_000 };
    unsettled(await runUntilSettled(env, executor.execute({ ...request, op: "acquire" })));
    store.readFaults = [];
    const again = applied(await executor.execute({ ...request, op: "acquire" }));
    expect(again.decision.lease.generation).toBe(1n);
  });

  it("does not give one grant to two callers at once", async () => {
    const { executor, store, env } = world();
    await executor.read(KEY);
    store.writeFaults = ["reply-lost"];
    store.readFaults = Array.from({ length: 1_000 }, () => "failed" as const);
    const request = { key: KEY, holder: "a", ttlMs: 60_000, timeoutMs: 1_000 };
    unsettled(await runUntilSettled(env, executor.execute({ ...request, op: "acquire" })));
    store.readFaults = [];
    const both = await Promise.all([
      executor.execute({ ...request, op: "acquire" }),
      executor.execute({ ...request, op: "acquire" }),
    ]);
    expect(both.map((outcome) => outcome.kind).sort()).toEqual(["applied", "refused"]);
  });
});

describe("an idempotency key", () => {
  const request = { key: KEY, holder: "a", ttlMs: 60_000, idempotencyKey: "order-7-attempt-1" };

  it("replays the first answer, token included, in a process that knows nothing of it", async () => {
    const { executor, another } = world();
    const first = applied(await executor.execute({ ...request, op: "acquire" }));
    const second = applied(await another().execute({ ...request, op: "acquire" }));
    expect(second.decision.replayed).toBe(true);
    expect(second.token).toBe(first.token);
    expect(recordFence(second.decision.lease)).toBe(recordFence(first.decision.lease));
  });

  it("of another caller is refused", async () => {
    const { executor, another } = world();
    applied(await executor.execute({ ...request, op: "acquire" }, { caller: "me" }));
    const { decision } = refused(
      await another().execute({ ...request, op: "acquire" }, { caller: "somebody else" }),
    );
    expect(decision).toMatchObject({ reason: "IDEMPOTENCY_KEY_REUSED", field: "idempotencyKey" });
  });

  it("does not prolong what it replays, nor let it be believed longer than the record", async () => {
    const { executor, another, env } = world();
    applied(await executor.execute({ ...request, op: "acquire" }));
    await env.advance(45_000);
    expect(applied(await another().execute({ ...request, op: "acquire" })).validForMs).toBe(15_000);
  });

  it.each([
    ["holder", { holder: "b" }],
    ["ttlMs", { ttlMs: 59_999 }],
    ["purpose", { purpose: "StateWrite" as const }],
    ["note", { note: "other" }],
  ])("with another %s is refused", async (_field, altered) => {
    const { executor, another } = world();
    applied(await executor.execute({ ...request, op: "acquire" }));
    const { decision } = refused(await another().execute({ op: "acquire", ...request, ...altered }));
    expect(decision).toMatchObject({
      kind: "refused",
      reason: "IDEMPOTENCY_KEY_REUSED",
      field: "idempotencyKey",
    });
  });

  it("never grants a second time after its grant has ended", async () => {
    const { executor, another, env } = world();
    const { token } = applied(await executor.execute({ ...request, op: "acquire" }));
    applied(await executor.execute({ op: "release", key: KEY, holder: "a", token }));
    expect(refused(await another().execute({ ...request, op: "acquire" })).decision.reason).toBe(
      "LEASE_NOT_FOUND",
    );
    const later = { ...request, key: { tenant: "default", name: "later" } };
    applied(await executor.execute({ ...later, op: "acquire" }));
    await env.advance(60_000);
    expect(refused(await another().execute({ ...later, op: "acquire" })).decision.reason).toBe(
      "LEASE_EXPIRED",
    );
  });

  it("is not in the store in the clear, and neither is the token", async () => {
    const { executor, memory } = world();
    const { token } = applied(await executor.execute({ ...request, op: "acquire" }));
    const { records } = await memory.read([KEY]);
    const stored = JSON.stringify(records, (_name, value) =>
      typeof value === "bigint" ? String(value) : value,
    );
    expect(stored).not.toContain(request.idempotencyKey);
    expect(stored).not.toContain(token);
  });
});

describe("a token", () => {
  it("has 128 random bits and is new for every grant", async () => {
    const { executor } = world();
    const first = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    applied(await executor.execute({ op: "release", key: KEY, holder: "a", token: first.token }));
    const second = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    expect(second.token).not.toBe(first.token);
    expect(Buffer.from(second.token, "base64url")).toHaveLength(16);
    expect(
      refused(await executor.execute({ op: "renew", key: KEY, holder: "a", token: first.token })).decision
        .reason,
    ).toBe("LEASE_TOKEN_INVALID");
  });
});

describe("a token that is remembered with the lease it proved", () => {
  it("is not confused with another of the same holder, of the same length", async () => {
    const { executor } = world();
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    const guess = `${token.startsWith("A") ? "B" : "A"}${token.slice(1)}`;
    const { decision } = refused(
      await executor.execute({ op: "release", key: KEY, holder: "a", token: guess }),
    );
    expect(decision.reason).toBe("LEASE_TOKEN_INVALID");
    applied(await executor.execute({ op: "renew", key: KEY, holder: "a", token, ttlMs: 5_000 }));
    applied(await executor.execute({ op: "release", key: KEY, holder: "a", token }));
  });

  it("proves nothing once the key is another's", async () => {
    const { executor, another, env } = world();
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    await env.advance(10_000);
    applied(await another().execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    const { decision } = refused(
      await executor.execute({ op: "renew", key: KEY, holder: "a", token, ttlMs: 5_000 }),
    );
    expect(decision.reason).toBe("LEASE_TOKEN_INVALID");
  });
});

describe("a request that is wrong in itself", () => {
  it("is refused by name without asking the store anything", async () => {
    const { executor, store } = world();
    const key = { tenant: "default", name: "x".repeat(300) };
    const { decision } = refused(await executor.execute({ op: "acquire", key, holder: "a", ttlMs: 5_000 }));
    expect(decision).toMatchObject({ kind: "refused", field: "key.name" });
    expect(store.calls).toEqual({ read: 0, apply: 0, writes: 0 });
  });
});
