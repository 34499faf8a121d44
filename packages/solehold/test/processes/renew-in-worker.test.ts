// `renewIn: "worker"` in a real process whose event loop is really blocked, on a real Redis.
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect, type Leases } from "../../src/index.ts";
import { engine, type FaultProxy, startProxy } from "../engines/index.ts";

let leases: Leases;
let name: string;
const children = new Set<ChildProcess>();
const proxies = new Set<FaultProxy>();

beforeEach(async () => {
  leases = await connect(engine("redis"));
  name = `blocked-${leases.holder}`;
});

afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  for (const proxy of proxies) await proxy.close();
  proxies.clear();
  await leases.close();
});

class Holder {
  readonly #child: ChildProcess;
  readonly messages: unknown[] = [];

  constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", (message) => this.messages.push(message));
    child.on("exit", (code) => this.messages.push({ ended: code }));
  }

  static async start(options: { ttl: number; bound: number; url?: string }): Promise<Holder> {
    const { ttl, bound, url = engine("redis") } = options;
    const script = join(import.meta.dirname, "blocked-holder.mjs");
    const child = fork(script, [url, name, String(ttl), String(bound)], {
      // The build, as users do; the test runner's own flags would lead to the sources.
      execArgv: [],
      stdio: ["pipe", "inherit", "inherit", "ipc"],
    });
    children.add(child);
    const holder = new Holder(child);
    await holder.says("ready");
    return holder;
  }

  async says(expected: unknown): Promise<void> {
    await expect.poll(() => this.messages).toContainEqual(expected);
  }

  async block(): Promise<void> {
    this.#child.send("block");
    await this.says("blocked");
  }

  unblock(): void {
    this.#child.stdin?.write("x");
  }

  abandon(): void {
    this.#child.send("abandon");
  }
}

async function expiresAtMs(): Promise<number> {
  return (await leases.inspect(name))?.expiresAtMs ?? 0;
}

describe("a lease that a thread renews", () => {
  it("outlives a main thread that is busy for longer than its ttl, and is held in the very turn after", async () => {
    const holder = await Holder.start({ ttl: 2_000, bound: 60_000 });
    const fence = String((await leases.inspect(name))?.fence);
    await holder.block();
    const firstMs = await expiresAtMs();
    await expect.poll(expiresAtMs).toBeGreaterThan(firstMs + 2_000);
    expect((await leases.tryAcquire(name)).ok).toBe(false);
    holder.unblock();
    await holder.says(expect.objectContaining({ held: true, state: "held", fence }));
  });

  it("ends when the main thread hangs for longer than the bound, and is lost in the very turn after", async () => {
    const holder = await Holder.start({ ttl: 1_000, bound: 300 });
    await holder.block();
    // Granted while it is still blocked: nobody has let it go on.
    await leases.acquire(name, { wait: "30s" });
    holder.unblock();
    await holder.says(expect.objectContaining({ remainingMs: 0, held: false, state: "lost" }));
    await holder.says({ lost: "expired" });
  });

  it("is believed from before its renewal was sent, however late the answer is", async () => {
    const proxy = await startProxy({ targetPort: Number(new URL(engine("redis")).port) });
    proxies.add(proxy);
    const holder = await Holder.start({ ttl: 6_000, bound: 60_000, url: proxy.through(engine("redis")) });
    proxy.delay(100);
    holder.messages.length = 0;
    await holder.says({ renewed: expect.any(Number) });
    holder.messages.length = 0;
    await holder.says({ renewed: expect.any(Number) });
    const [{ renewed }] = holder.messages as [{ renewed: number }];
    expect(renewed).toBeLessThanOrEqual(6_000 - 2 * 100);
  });

  it("that was revoked meanwhile is lost with that reason", async () => {
    const holder = await Holder.start({ ttl: 20_000, bound: 60_000 });
    await holder.block();
    await leases.revoke(name);
    holder.unblock();
    await holder.says({ lost: "revoked" });
  });

  it("is renewed no more after its holder abandoned it", async () => {
    const holder = await Holder.start({ ttl: 1_000, bound: 60_000 });
    holder.abandon();
    await leases.acquire(name, { wait: "30s" });
  });
});

describe("renewing in a thread is refused", () => {
  it.each([
    ["memory:", { renewIn: "worker" }, /renewIn: "worker" needs a store that a thread can open/],
    ["redis:", { renewIn: "thread" }, /renewIn must be "main" or "worker", got "thread"/],
    ["redis:", { mainThreadBound: "1s" }, /mainThreadBound is for renewIn: "worker"/],
    ["redis:", { renewIn: "worker", mainThreadBound: 50 }, /mainThreadBound/],
    ["redis:", { renewIn: "worker", env: {} }, /leave out env/],
  ])("%s %j", async (url, options, message) => {
    await expect(connect(url, options as never)).rejects.toThrow(message);
  });
});
