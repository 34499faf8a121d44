/** Two causes at once: a lost reply and a second writer, a slow read and a renewal, a lost write and the next waiter. */
import { describe, expect, it } from "vitest";
import { type LeaseKey, recordFence } from "../../src/core/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { ClockedStore } from "./clocked-store.ts";
import { applied, goBackTo, KEY, refused, runUntilSettled, storedIn, unsettled, world } from "./helpers.ts";

const NEXT = { op: "acquire", key: KEY, holder: "next", ttlMs: 5_000, token: "token-of-next" } as const;

describe("a read that is slow to reach a store without a clock", () => {
  it("counts from its receipt: a renewal on the way may be as young as that", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env, "none");
    const [holder, contender] = [new StoreExecutor({ store, env }), new StoreExecutor({ store, env })];
    const owner = { key: KEY, holder: "a", ttlMs: 1_000 };
    const { token } = applied(await holder.execute({ op: "acquire", ...owner }));
    store.beforeReading = async () => {
      store.beforeReading = async () => undefined;
      await env.advance(900);
      applied(await holder.execute({ op: "renew", ...owner, token }));
    };
    const contest = () => contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 });
    expect(refused(await contest()).decision.reason).toBe("LEASE_HELD_BY_OTHER");
    // 1,050 ms after the question, 150 ms after the renewal: the holder believes for 850 more.
    await env.advance(150);
    expect(refused(await contest()).decision.reason).toBe("LEASE_HELD_BY_OTHER");
    await env.advance(862);
    applied(await contest());
  });
});

describe("a grant that another server found unclaimed and is about to release", () => {
  it("is written anew before a repeat of the request believes in it", async () => {
    const { executor, store, another } = world();
    const server = another();
    const request = { key: KEY, holder: "a", token: "chosen-by-the-client" } as const;
    await executor.read(KEY);
    const first = applied(await server.execute({ op: "acquire", ...request, ttlMs: 60_000 }));
    // The repeat meets the grant only after a write of its own got lost.
    store.writeFaults = ["delayed"];
    const repeated = applied(await executor.execute({ op: "acquire", ...request, ttlMs: 60_000 }));
    expect(recordFence(repeated.decision.lease)).toBe(recordFence(first.decision.lease));
    const onlyNonce = first.decision.lease.nonce;
    const released = await server.execute({ op: "release", ...request, onlyNonce });
    expect(refused(released).decision.reason).toBe("LEASE_NOT_FOUND");
    applied(await executor.execute({ op: "renew", ...request, ttlMs: 60_000 }));
  });

  it("is still released when nobody has written it since", async () => {
    const { executor } = world();
    const { token, decision } = applied(
      await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 60_000 }),
    );
    const onlyNonce = decision.lease.nonce;
    applied(await executor.execute({ op: "release", key: KEY, holder: "a", token, onlyNonce }));
    expect(await executor.read(KEY)).toMatchObject({ state: "released" });
  });
});

describe("an acquire that ended as unknown", () => {
  async function unknownAcquire(token?: string) {
    const { env, executor, store } = world();
    const given = token === undefined ? {} : { token };
    await executor.read(KEY);
    store.writeFaults = ["reply-lost"];
    store.readFaults = Array.from({ length: 1_000 }, () => "failed" as const);
    const request = { op: "acquire", key: KEY, holder: "a", ttlMs: 60_000, timeoutMs: 1_000 } as const;
    unsettled(await runUntilSettled(env, executor.execute({ ...request, ...given })));
    store.readFaults = [];
    return { executor, request };
  }

  it("is found again by its holder although another holder asked in between", async () => {
    const { executor, request } = await unknownAcquire();
    refused(await executor.execute({ ...request, holder: "b" }));
    expect(recordFence(applied(await executor.execute(request)).decision.lease)).toBe(1n);
  });

  it("with a token that its caller chose is found by that token alone: another caller must not get it", async () => {
    const { executor, request } = await unknownAcquire("chosen-by-the-caller");
    const stranger = refused(await executor.execute(request));
    expect(stranger.decision.reason).toBe("LEASE_HELD_BY_SELF");
    const again = applied(await executor.execute({ ...request, token: "chosen-by-the-caller" }));
    expect(recordFence(again.decision.lease)).toBe(1n);
  });
});

describe("an acquire of one of two slots that found its free slot taken", () => {
  async function overtaken() {
    const { executor, store, another } = world();
    const other = another();
    const request = { op: "acquire", key: KEY, ttlMs: 60_000, slots: 2 } as const;
    const apply = store.apply.bind(store);
    const theirs: { readonly key: LeaseKey; readonly holder: string; readonly token: string }[] = [];
    store.apply = async (writes) => {
      store.apply = apply;
      for (const holder of ["b", "c"]) {
        const { decision, token } = applied(await other.execute({ ...request, holder }));
        theirs.push({ key: decision.lease.key, holder, token });
      }
      return await apply(writes);
    };
    return { executor, store, other, theirs, request: { ...request, holder: "a" } };
  }

  it("stays denied when the store cannot be read after that", async () => {
    const { executor, store, request } = await overtaken();
    const acquiring = executor.execute(request);
    // The first read finds both free.
    store.readFaults = [null, ...Array.from({ length: 10 }, () => "failed" as const)];
    expect(refused(await acquiring).decision.reason).toBe("LEASE_HELD_BY_OTHER");
  });

  it("stays denied when another becomes free, and certainly could not be had", async () => {
    const { executor, store, other, theirs, request } = await overtaken();
    const read = store.read.bind(store);
    let reads = 0;
    store.read = async (keys) => {
      reads += 1;
      if (reads > 1) {
        store.read = read;
        for (const owner of theirs) await other.execute({ op: "release", ...owner });
        store.writeFaults = ["failed-before"];
      }
      return await read(keys);
    };
    expect(refused(await executor.execute(request)).decision.reason).toBe("LEASE_HELD_BY_OTHER");
  });
});

describe("an operator's command whose reply was lost", () => {
  it.each([
    ["break", { op: "break", key: KEY, periodMs: 0 }],
    ["revoke", { op: "revoke", key: KEY }],
  ] as const)("%s does not strike the holder that came after", async (_op, command) => {
    const { env, store, executor, another } = world();
    const other = another();
    const old = applied(await other.execute({ op: "acquire", key: KEY, holder: "old", ttlMs: 1_000 }));
    await executor.read(KEY);
    store.writeFaults = ["reply-lost"];
    store.readFaults = ["failed", "failed"];
    const struck = executor.execute(command);
    await env.advance(1);
    applied(await other.execute({ op: "release", key: KEY, holder: "old", token: old.token }));
    const next = applied(await other.execute({ op: "acquire", key: KEY, holder: "new", ttlMs: 60_000 }));
    const { decision } = refused(await runUntilSettled(env, struck));
    expect(decision.reason).toBe("LEASE_GENERATION_STALE");
    expect((await other.read(KEY))?.breakAtMs).toBeNull();
    applied(await other.execute({ op: "renew", key: KEY, holder: "new", token: next.token, ttlMs: 60_000 }));
  });
});

describe("a release that serves the next waiter", () => {
  async function held() {
    const { executor, ...rest } = world();
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    const release = { op: "release", key: KEY, holder: "a", token } as const;
    return { executor, token, release, ...rest };
  }

  it("binds the waiter's idempotency key to the waiter's caller, not to the one that released", async () => {
    const { executor, another, release } = await held();
    const request = { ...NEXT, idempotencyKey: "order-7" };
    const next = { request, context: { caller: "caller-of-next" } };
    applied(await executor.execute({ ...release, next }, { caller: "caller-of-a" }));
    const repeat = { ...request, token: "another-token" };
    const replayed = applied(await another().execute(repeat, { caller: "caller-of-next" }));
    expect(replayed.decision.replayed).toBe(true);
    expect(replayed.token).toBe(NEXT.token);
    const stolen = refused(await another().execute(repeat, { caller: "caller-of-a" }));
    expect(stolen.decision.reason).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  it("is recognised by its nonce when its second attempt lands and the reply is lost", async () => {
    const { executor, another, store, release, token } = await held();
    applied(await another().execute({ op: "renew", key: KEY, holder: "a", token, ttlMs: 5_000 }));
    // The first attempt meets the renewal; the second one lands.
    store.writeFaults = [null, "reply-lost"];
    const outcome = applied(await executor.execute({ ...release, next: { request: NEXT, context: {} } }));
    expect(outcome.next).toMatchObject({ kind: "applied", token: NEXT.token });
    applied(await another().execute({ ...NEXT, op: "renew" }));
  });

  it("that ended as unknown leaves the waiter's grant unknown, too", async () => {
    const { env, executor, store, release } = await held();
    store.writeFaults = ["reply-lost"];
    store.readFaults = Array.from({ length: 1_000 }, () => "failed" as const);
    const releasing = executor.execute({
      ...release,
      next: { request: NEXT, context: {} },
      timeoutMs: 1_000,
    });
    const outcome = unsettled(await runUntilSettled(env, releasing));
    expect(outcome).toMatchObject({ outcome: "unknown", next: { kind: "unsettled", outcome: "unknown" } });
  });

  it("that certainly did nothing leaves no grant in doubt", async () => {
    const { executor, store, release } = await held();
    store.writeFaults = ["failed-before"];
    const outcome = unsettled(await executor.execute({ ...release, next: { request: NEXT, context: {} } }));
    expect(outcome.outcome).toBe("not-applied");
    expect(outcome.next).toBeUndefined();
  });

  it("serves nobody on a store that lost writes: the fence would have been granted before", async () => {
    const { executor, memory, another, release } = await held();
    const before = (await storedIn(memory)).record;
    const other = another();
    applied(await other.execute(release));
    applied(await other.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 5_000 }));
    await executor.read(KEY);
    await goBackTo(before, memory);
    const outcome = applied(await executor.execute({ ...release, next: { request: NEXT, context: {} } }));
    expect(outcome.next).toBeUndefined();
    expect(await executor.read(KEY)).toMatchObject({ state: "released", holder: "a" });
  });
});

describe("a token that was remembered with its lease", () => {
  it("does not prove the next holder's lease, however often it is tried", async () => {
    const { executor, another, env } = world();
    const owner = { key: KEY, holder: "a" };
    const { token } = applied(await executor.execute({ op: "acquire", ...owner, ttlMs: 5_000 }));
    await env.advance(10_000);
    applied(await another().execute({ op: "acquire", ...owner, ttlMs: 5_000 }));
    for (let time = 0; time < 3; time += 1) {
      const { decision } = refused(await executor.execute({ op: "renew", ...owner, token, ttlMs: 5_000 }));
      expect(decision.reason).toBe("LEASE_TOKEN_INVALID");
    }
  });
});
