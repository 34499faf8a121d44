/** Watch events of a store that announces only which key changed: the record is read, in few calls. */
import { describe, expect, it } from "vitest";
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import type { LeaseKey } from "../../src/core/index.ts";
import { ManualEnv, settle } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { LeaseService, type RecordEvent, watchRecords } from "../../src/layers/index.ts";
import { decorateStore, MemoryStore, type WatchListener } from "../../src/store/index.ts";

const keyOf = (name: string): LeaseKey => ({ tenant: "default", name });

async function world() {
  const env = new ManualEnv();
  const inner = new MemoryStore({ env });
  const reads: string[][] = [];
  const state: { read: "answers" | "fails" | "hangs"; reply: Promise<void> } = {
    read: "answers",
    reply: Promise.resolve(),
  };
  const store = decorateStore(inner, {
    read: async (keys) => {
      reads.push(keys.map(({ name }) => name));
      if (state.read === "fails") throw new Error("down");
      if (state.read === "hangs") return await new Promise(() => undefined);
      const reply = await inner.read(keys);
      await state.reply;
      return reply;
    },
    watch: (scope, listener) => inner.watch(scope, withoutRecord(listener)),
  });
  const executor = new StoreExecutor({ store, env });
  const events: RecordEvent[] = [];
  const scope = { tenant: null, prefix: "" };
  const watch = await watchRecords(executor, env, scope, (event) => void events.push(event));
  /** Another process, which looks at nothing here. */
  const other = new StoreExecutor({ store: inner, env });
  const token = "chosen-by-the-other";
  const grant = async (name: string): Promise<void> => {
    await other.execute({ op: "acquire", key: keyOf(name), holder: "other", token, ttlMs: 60_000 });
  };
  const release = async (name: string): Promise<void> => {
    await other.execute({ op: "release", key: keyOf(name), holder: "other", token });
  };
  return { env, executor, reads, state, events, watch, grant, release };
}

function withoutRecord(listener: WatchListener): WatchListener {
  return (event) => listener(event.kind === "changed" ? { ...event, stored: null } : event);
}

describe("events that do not carry the record", () => {
  it("are completed by a read, many keys in one call", async () => {
    const { reads, events, grant } = await world();
    await Promise.all(["a", "b", "c"].map(grant));
    await settle();
    expect(reads.flat().sort()).toEqual(["a", "b", "c"]);
    expect(reads.length).toBeLessThanOrEqual(2);
    expect(events.map((event) => event.kind === "changed" && event.stored)).toEqual([
      expect.objectContaining({ kind: "found", record: expect.objectContaining({ holder: "other" }) }),
      expect.objectContaining({ kind: "found" }),
      expect.objectContaining({ kind: "found" }),
    ]);
  });

  it.each(["fails", "hangs"] as const)(
    "become a reset when the read %s, and go on afterwards",
    async (how) => {
      const { env, state, events, grant } = await world();
      state.read = how;
      await grant("a");
      await env.advance(5_000);
      expect(events).toEqual([{ kind: "reset" }]);
      state.read = "answers";
      await grant("b");
      await settle();
      expect(events.at(-1)).toMatchObject({ kind: "changed", key: keyOf("b"), stored: { kind: "found" } });
    },
  );

  it("during the read of their key lead to another one", async () => {
    const { state, events, grant, release } = await world();
    let reply = (): void => undefined;
    state.reply = new Promise((resolve) => {
      reply = resolve;
    });
    await grant("a");
    await settle();
    await release("a");
    await settle();
    reply();
    await settle();
    expect(events.at(-1)).toMatchObject({ stored: { kind: "found", record: { state: "released" } } });
  });

  it("are not delivered after the watch was closed", async () => {
    const { events, watch, grant } = await world();
    const granted = grant("a");
    await watch?.close();
    await granted;
    await settle();
    expect(events).toEqual([]);
  });

  it("are enough for a service to count the leases of other processes, and to see them end", async () => {
    const { env, executor, grant } = await world();
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const service = new LeaseService({ executor, audit, env });
    expect(await service.activeCount("default")).toBe(0);
    await grant("a");
    await settle();
    expect(await service.activeCount("default")).toBe(1);
    await env.advance(60_000);
    expect((await audit.query()).map(({ action, key }) => `${action} ${key}`)).toEqual(["expire a"]);
    await service.close();
  });
});

describe("a service over a store that cannot list", () => {
  it("counts what it granted and what is announced, and nothing from before", async () => {
    const env = new ManualEnv();
    const { list: _list, ...store } = decorateStore(new MemoryStore({ env }), {});
    const other = new StoreExecutor({ store, env });
    await other.execute({ op: "acquire", key: keyOf("before"), holder: "other", ttlMs: 60_000 });
    const executor = new StoreExecutor({ store, env });
    const service = new LeaseService({ executor, audit: new MemoryAuditTrail({ capacity: 10 }), env });
    await service.execute({ op: "acquire", key: keyOf("own"), holder: "h", ttlMs: 60_000 });
    await other.execute({ op: "acquire", key: keyOf("after"), holder: "other", ttlMs: 60_000 });
    await settle();
    expect(await service.activeCount("default")).toBe(2);
    await service.close();
  });
});
