/** A release while somebody waits: both decisions travel in one write. */
import { describe, expect, it } from "vitest";
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv, settle } from "../../src/env/index.ts";
import { type CommandOutcome, type Recipient, StoreExecutor } from "../../src/executor/index.ts";
import { LeaseService } from "../../src/layers/index.ts";
import { type ConditionalWrite, type LeaseStore, MemoryStore, StoreError } from "../../src/store/index.ts";
import { withWaitQueue } from "../../src/waiting/index.ts";

const key = { tenant: "default", name: "job" };

/** Stays for as long as the test wants. */
function connectionOf(): Recipient & { drop(): void; cancel(): void } {
  let [gone, cancelled] = [false, false];
  const listeners = new Set<() => void>();
  const drop = (): void => {
    gone = true;
    for (const listener of listeners) listener();
  };
  return {
    isGone: () => gone,
    isCancelled: () => cancelled,
    onGone: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    drop,
    cancel: () => {
      cancelled = true;
      drop();
    },
  };
}

async function world() {
  const env = new ManualEnv();
  const inner = new MemoryStore({ env });
  const writes: ConditionalWrite[] = [];
  let next: "answers" | "loses the answer" | "loses the request" = "answers";
  let opened: Promise<void> = Promise.resolve();
  const store: LeaseStore = {
    name: inner.name,
    capabilities: inner.capabilities,
    now: () => inner.now(),
    read: async (keys) => {
      await opened;
      return await inner.read(keys);
    },
    list: (query) => inner.list(query),
    watch: (scope, listener) => inner.watch(scope, listener),
    close: () => inner.close(),
    apply: async (batch) => {
      const how = next;
      next = "answers";
      writes.push(...batch.filter((write) => !write.key.name.startsWith("$")));
      await opened;
      const reply = how === "loses the request" ? null : await inner.apply(batch);
      if (how === "answers" && reply !== null) return reply;
      throw new StoreError("timeout", "no answer", { outcome: "unknown" });
    },
  };
  const executor = new StoreExecutor({ store, env, policy: { generations: "count" } });
  const audit = new MemoryAuditTrail({ capacity: 1_000 });
  const service = new LeaseService({ executor, audit, env });
  const queue = withWaitQueue({ env })(service);
  const ask = (holder: string, changes: { waitMs?: number; ttlMs?: number } = {}) => {
    const { waitMs = 60_000, ttlMs = 10_000 } = changes;
    const connection = connectionOf();
    const asked = { connection, reply: null as CommandOutcome | null };
    const request = { op: "acquire", key, holder, ttlMs, token: `token-of-${holder}` } as const;
    const context = { traceId: holder, wait: { waitMs }, recipient: connection };
    void queue.execute(request, context).then((reply) => {
      if (!connection.isGone()) asked.reply = reply;
    });
    return asked;
  };
  const release = (holder: string, token = `token-of-${holder}`) =>
    queue.execute({ op: "release", key, holder, token }, { traceId: `release-of-${holder}` });
  const freeze = (): (() => void) => {
    let open: () => void = () => undefined;
    opened = new Promise((resolve) => {
      open = resolve;
    });
    return open;
  };
  const trail = async () =>
    (await audit.query({ limit: 1_000 })).map(
      ({ action, outcome, traceId, fence }) => `${traceId}: ${action} ${outcome} ${BigInt(fence ?? 0)}`,
    );
  const first = ask("one");
  await settle();
  expect(first.reply?.kind).toBe("applied");
  writes.length = 0;
  const lose = (what: typeof next): void => {
    next = what;
  };
  return { env, store: inner, executor, service, queue, writes, ask, release, trail, lose, freeze };
}

function fenceOf(reply: CommandOutcome | null): string {
  return reply?.kind === "applied"
    ? `${reply.decision.lease.holder}@${reply.decision.lease.generation}`
    : String(reply?.kind);
}

describe("a release while somebody waits", () => {
  it("is one write with the grant, and each has its own answer and its own entry in the audit", async () => {
    const { ask, release, writes, trail, service } = await world();
    const second = ask("two");
    await settle();
    writes.length = 0;
    const released = await release("one");
    await settle();
    expect(writes.map(({ next }) => [next?.state, next?.holder])).toEqual([["held", "two"]]);
    expect(fenceOf(released)).toBe("one@1");
    expect(released).toMatchObject({ decision: { lease: { state: "released" } } });
    expect(fenceOf(second.reply)).toBe("two@2");
    expect(second.reply).toMatchObject({ token: "token-of-two", validForMs: 10_000 });
    const entries = await trail();
    expect(entries.slice(-2)).toEqual(["release-of-one: release applied 1", "two: grant applied 2"]);
    expect(await service.read(key)).toMatchObject({ holder: "two", live: true, generation: 2n });
  });

  it("goes to the first in the queue, and the others stay in it without an attempt of their own", async () => {
    const { ask, release, trail } = await world();
    const callers = ["two", "three", "four"].map((holder) => ask(holder));
    await settle();
    const before = (await trail()).length;
    await release("one");
    await settle();
    expect(callers.map(({ reply }) => reply && fenceOf(reply))).toEqual(["two@2", null, null]);
    expect((await trail()).length).toBe(before + 2);
    await release("two");
    await settle();
    await release("three");
    await settle();
    expect(callers.map(({ reply }) => reply && fenceOf(reply))).toEqual(["two@2", "three@3", "four@4"]);
  });

  it("with the wrong token releases nothing and grants nothing; the right one does, later", async () => {
    const { ask, release, service, trail } = await world();
    const second = ask("two");
    await settle();
    const before = (await trail()).length;
    const refused = await release("one", "stolen");
    await settle();
    expect(refused.kind).toBe("refused");
    expect(second.reply).toBeNull();
    expect((await trail()).length).toBe(before + 1);
    expect(await service.read(key)).toMatchObject({ holder: "one", live: true });
    await release("one");
    await settle();
    expect(fenceOf(second.reply)).toBe("two@2");
  });

  it("whose answer is lost is found again: both learn that it was done, with one grant", async () => {
    const { ask, release, lose, writes } = await world();
    const second = ask("two");
    await settle();
    writes.length = 0;
    lose("loses the answer");
    const released = await release("one");
    await settle();
    expect(fenceOf(released)).toBe("one@1");
    expect(released).toMatchObject({ decision: { lease: { state: "released", holder: "one" } } });
    expect(fenceOf(second.reply)).toBe("two@2");
    expect(writes).toHaveLength(1);
  });

  it("that never arrived is tried again, and both learn of the one that did", async () => {
    const { ask, release, lose, writes } = await world();
    const second = ask("two");
    await settle();
    writes.length = 0;
    lose("loses the request");
    const released = await release("one");
    await settle();
    expect(fenceOf(released)).toBe("one@1");
    expect(fenceOf(second.reply)).toBe("two@2");
    expect(writes.map(({ next }) => next?.holder)).toEqual(["two", "two"]);
  });

  it("for somebody who left meanwhile is released, and the next one gets it", async () => {
    const { ask, release, freeze } = await world();
    const second = ask("two");
    const third = ask("three");
    await settle();
    const thaw = freeze();
    const releasing = release("one");
    await settle();
    second.connection.drop();
    thaw();
    expect(fenceOf(await releasing)).toBe("one@1");
    await settle();
    expect(second.reply).toBeNull();
    expect(fenceOf(third.reply)).toBe("three@3");
  });

  it("that may have served somebody who left, before an operator wrote, is released", async () => {
    const { env, ask, release, lose, freeze, store } = await world();
    const second = ask("two");
    await settle();
    const operator = new StoreExecutor({ store, env });
    const read = store.read.bind(store);
    store.read = async (keys) => {
      store.read = read;
      expect(await operator.execute({ op: "break", key, periodMs: 60_000 })).toMatchObject({
        kind: "applied",
      });
      return await read(keys);
    };
    lose("loses the answer");
    const thaw = freeze();
    const releasing = release("one");
    await settle();
    second.connection.cancel();
    thaw();
    expect((await releasing).kind).toBe("refused");
    await settle();
    expect(await operator.read(key)).toMatchObject({ holder: "two", state: "released" });
  });

  it("that is refused still tells the one whose time ran out meanwhile", async () => {
    const { env, ask, release, service, freeze } = await world();
    const second = ask("two", { waitMs: 50 });
    await settle();
    const thaw = freeze();
    const releasing = release("one", "stolen");
    await env.advance(60);
    expect(second.reply).toBeNull();
    thaw();
    expect((await releasing).kind).toBe("refused");
    await settle();
    expect(second.reply?.kind).toBe("refused");
    expect(await service.read(key)).toMatchObject({ holder: "one" });
  });

  it("does not hand out a fence again after the store lost writes: the release goes alone", async () => {
    const { ask, release, executor, store, writes } = await world();
    const [early] = (await store.read([key])).records;
    if (early?.kind !== "found") throw new Error("the first grant is there");
    await release("one");
    await executor.execute({ op: "acquire", key, holder: "x", token: "token-of-x", ttlMs: 10_000 });
    await executor.execute({ op: "release", key, holder: "x", token: "token-of-x" });
    await executor.execute({ op: "acquire", key, holder: "y", token: "token-of-y", ttlMs: 10_000 });
    const waiting = ask("two");
    await settle();
    expect(waiting.reply).toBeNull();
    // A backup is played back: the first grant stands there again, as if the others had never been.
    const [now] = (await store.read([key])).records;
    const restored = { ...early.record, nonce: "restored" };
    await store.apply([{ key, expected: now?.kind === "found" ? now.version : null, next: restored }]);
    await settle();
    writes.length = 0;
    expect(fenceOf(await release("one"))).toBe("one@1");
    await settle();
    expect(writes.map(({ next }) => [next?.state, next?.generation])).toEqual([["released", 1n]]);
    expect(waiting.reply).toMatchObject({ decision: { reason: "FENCE_WENT_BACK" } });
  });
});
