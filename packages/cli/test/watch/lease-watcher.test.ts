import { type LeaseExecutor, MemoryExecutor, StoreError } from "solehold";
import { ManualEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Change } from "../../src/actions/watch/lease-diff.ts";
import { LeaseWatcher } from "../../src/actions/watch/lease-watcher.ts";

const key = { tenant: "default", name: "job/1" };

async function follow(adjust: (executor: MemoryExecutor) => LeaseExecutor = (executor) => executor) {
  const env = new ManualEnv();
  const memory = new MemoryExecutor({ env, policy: { generations: "count" } });
  const lines: string[] = [];
  const troubles: unknown[] = [];
  const stop = new AbortController();
  const onChange = ({ kind, view }: Change): void => void lines.push(`${kind} ${view.fence}`);
  const onTrouble = (error: unknown): void => void troubles.push(error);
  const options = { tenant: "default", prefix: "job/", everyMs: 1_000, onChange, onTrouble, env };
  const watching = new LeaseWatcher({ ...options, executor: adjust(memory) }).run(stop.signal);
  const ended = watching.then(
    () => null,
    (reason: unknown) => reason,
  );
  onTestFinished(async () => {
    stop.abort("enough");
    expect(await ended).toBe("enough");
    await env.advance(10_000);
    expect(env.pendingTimers).toBe(0);
  });
  await env.advance(0);
  return { env, memory, lines, troubles };
}

/** A store that announces nothing. */
function withoutEvents(executor: MemoryExecutor): LeaseExecutor {
  executor.watch = async () => null;
  return executor;
}

describe("the watcher", () => {
  it("finds that a lease has expired although no store announces that", async () => {
    const { env, memory, lines } = await follow();
    await memory.execute({ op: "acquire", key, holder: "me", ttlMs: 5_000 });
    await env.advance(4_000);
    expect(lines).toEqual(["granted 1"]);
    await env.advance(1_100);
    expect(lines).toEqual(["granted 1", "expired 1"]);
  });

  it("does not take a renewed lease for an expired one", async () => {
    const { env, memory, lines } = await follow();
    const granted = await memory.execute({ op: "acquire", key, holder: "me", ttlMs: 5_000 });
    const token = granted.kind === "applied" ? granted.token : "";
    for (let renewals = 0; renewals < 3; renewals += 1) {
      await env.advance(3_000);
      await memory.execute({ op: "renew", key, holder: "me", token, ttlMs: 5_000 });
    }
    await env.advance(4_000);
    expect(lines).toEqual(["granted 1", "renewed 1", "renewed 1", "renewed 1"]);
  });

  it("polls where the store has no events", async () => {
    const { env, memory, lines } = await follow(withoutEvents);
    await memory.execute({ op: "acquire", key, holder: "me", ttlMs: 2_500 });
    await env.advance(1_000);
    expect(lines).toEqual(["granted 1"]);
    await env.advance(3_000);
    expect(lines).toEqual(["granted 1", "expired 1"]);
  });

  it.each([
    ["with events", (executor: MemoryExecutor) => executor],
    ["without events", withoutEvents],
  ])("goes on when the store does not answer for a while, %s", async (_case, adjust) => {
    const { env, memory, lines, troubles } = await follow(adjust);
    const { read, list } = memory;
    await memory.execute({ op: "acquire", key, holder: "me", ttlMs: 1_500 });
    await env.advance(1_000);
    const down = async (): Promise<never> => {
      throw new StoreError("unreachable", "down", { outcome: "not-applied" });
    };
    memory.read = down;
    memory.list = down;
    await env.advance(3_000);
    expect(troubles.length).toBeGreaterThan(0);
    memory.read = read;
    memory.list = list;
    await env.advance(2_000);
    expect(lines).toEqual(["granted 1", "expired 1"]);
  });
});
