// `renewIn: "worker"` in a real process whose event loop is really blocked, on real stores.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { connect, type Leases } from "../../src/index.ts";
import { engine, type FaultProxy, startProxy } from "../engines/index.ts";
import { BlockedHolder, outlivesItsBlock } from "./blocked-holder.ts";

let leases: Leases;
let name: string;
const proxies = new Set<FaultProxy>();

beforeEach(async () => {
  leases = await connect(engine("redis"));
  name = `blocked-${leases.holder}`;
});

afterEach(async () => {
  for (const proxy of proxies) await proxy.close();
  proxies.clear();
  await leases.close();
});

const start = (options: { ttl: number; bound: number; url?: string }): Promise<BlockedHolder> =>
  BlockedHolder.start({ url: engine("redis"), name, ...options });

function folderUrl(scheme: string): string {
  const folder = mkdtempSync(join(tmpdir(), "solehold-blocked-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return `${scheme}:${folder}`;
}

describe("a lease that a thread renews outlives a main thread that is busy for longer than its ttl, on", () => {
  const urls: Record<string, () => string> = {
    Redis: () => engine("redis"),
    PostgreSQL: () => engine("postgres"),
    MariaDB: () => engine("mariadb"),
    etcd: () => engine("etcd").replace("http:", "etcd:"),
    NATS: () => engine("nats"),
    "the embedded store": () => folderUrl("embedded"),
    files: () => folderUrl("file"),
  };
  it.each(Object.entries(urls))("%s", async (_, urlOf) => {
    const url = urlOf();
    const observer = await connect(url);
    onTestFinished(() => observer.close());
    await outlivesItsBlock(observer, url);
  });
});

describe("a lease that a thread renews", () => {
  it("ends when the main thread hangs for longer than the bound, and is lost in the very turn after", async () => {
    const holder = await start({ ttl: 1_000, bound: 300 });
    await holder.block();
    // Granted while it is still blocked: nobody has let it go on.
    await leases.acquire(name, { wait: "2m" });
    holder.unblock();
    await holder.says(expect.objectContaining({ remainingMs: 0, held: false, state: "lost" }));
    await holder.says({ lost: "expired" });
  });

  it("is believed from before its renewal was sent, however late the answer is", async () => {
    const proxy = await startProxy({ targetPort: Number(new URL(engine("redis")).port) });
    proxies.add(proxy);
    const holder = await start({ ttl: 6_000, bound: 60_000, url: proxy.through(engine("redis")) });
    proxy.delay(100);
    holder.messages.length = 0;
    await holder.says({ renewed: expect.any(Number) });
    holder.messages.length = 0;
    await holder.says({ renewed: expect.any(Number) });
    const [{ renewed }] = holder.messages as [{ renewed: number }];
    expect(renewed).toBeLessThanOrEqual(6_000 - 2 * 100);
  });

  it("that was revoked meanwhile is lost with that reason", async () => {
    const holder = await start({ ttl: 20_000, bound: 60_000 });
    await holder.block();
    await leases.revoke(name);
    holder.unblock();
    await holder.says({ lost: "revoked" });
  });

  it("is renewed no more after its holder abandoned it", async () => {
    const holder = await start({ ttl: 1_000, bound: 60_000 });
    holder.abandon();
    await leases.acquire(name, { wait: "2m" });
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
