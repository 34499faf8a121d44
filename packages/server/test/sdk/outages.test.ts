// Restarts and cuts that are shorter than what is left of a lease: its holder must not notice. All clocks are
// one manual clock; the sockets are real.
import { HttpTransport, ManualEnv, openExecutor, RemoteExecutor } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { World } from "../../../solehold/test/client/suite/index.ts";
import { startProxy } from "../../../solehold/test/engines/index.ts";
import { StableAddress } from "../support/address.ts";
import { tempFolder, testServer, until, whileTimeRuns } from "../support/server.ts";

type Way = "stream" | "http";

const TTL_MS = 6_000;
/** 1 % of the ttl and 2 ms. */
const MARGIN_MS = 62;

/** Clients reach the server through an address that can be moved and a wire that can be frozen. */
async function outageWorld(way: Way) {
  const env = new ManualEnv();
  const dataDir = await tempFolder();
  const address = await StableAddress.open();
  const proxy = await startProxy({ targetPort: Number(new URL(address.url).port) });
  onTestFinished(async () => await proxy.close());
  const url = proxy.through(address.url);
  const flags = { store: `embedded:${dataDir}/data`, advertiseUrl: url };
  const start = async () => {
    const started = await testServer(flags, { dataDir, env });
    address.leadTo(started.url);
    return started.server;
  };
  let server = await start();
  /** While nothing gets through, a call that is under way waits for the clock. */
  let isCut = false;
  const world = new World({
    env,
    inLine: () => server.queue.size,
    longestCallMs: () => (isCut ? 5 : 100),
    openExecutor: async () =>
      way === "stream"
        ? await openExecutor(url, { env })
        : new RemoteExecutor({ transport: new HttpTransport({ url: new URL(url), env }), env }),
  });
  return {
    world,
    server: () => server,
    stop: async () => {
      isCut = true;
      address.leadTo(null);
      await whileTimeRuns(env, server.close());
    },
    restart: async () => {
      server = await start();
      isCut = false;
    },
    /** No faster than in real time: the attempts that a server makes for its waiters are under way without a call. */
    inRealTime: async (step: Promise<unknown>) =>
      await whileTimeRuns(
        env,
        step.then(() => undefined),
      ),
    cut: () => {
      isCut = true;
      address.leadTo(null);
      address.cut();
    },
    restore: () => {
      address.leadTo(server.url);
      isCut = false;
    },
    freeze: () => {
      isCut = true;
      proxy.freeze();
    },
    thaw: () => {
      proxy.heal();
      isCut = false;
    },
  };
}

describe.each<Way>(["stream", "http"])("a holder over %s does not notice", (way) => {
  it("that the server is gone for a while and comes back", async () => {
    const { world, stop, restart } = await outageWorld(way);
    const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS });
    await world.advance(1_000);
    const { fence, expiresAtMs: before } = lease;
    await stop();
    await world.until(() => lease.state === "jeopardy");
    await restart();
    await world.until(() => lease.expiresAtMs > before);
    expect([lease.state, lease.signal.aborted, lease.fence]).toEqual(["held", false, fence]);
    expect(await lease.release()).toEqual({ released: true, reason: "released" });
  });

  it("that the network is cut and comes back", async () => {
    const { world, cut, restore } = await outageWorld(way);
    const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS });
    await world.advance(1_000);
    const before = lease.expiresAtMs;
    cut();
    await world.until(() => lease.state === "jeopardy");
    restore();
    await world.until(() => lease.expiresAtMs > before);
    expect([lease.state, lease.signal.aborted]).toEqual(["held", false]);
  });

  it("that packets vanish without a word for a while", async () => {
    const { world, freeze, thaw } = await outageWorld(way);
    const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS });
    await world.advance(1_000);
    const before = lease.expiresAtMs;
    freeze();
    await world.until(() => lease.state === "jeopardy");
    thaw();
    await world.until(() => lease.expiresAtMs > before);
    expect([lease.state, lease.signal.aborted]).toEqual(["held", false]);
  });

  it("while it waits: a restart costs it nothing but its place", async () => {
    const { world, server, stop, restart, inRealTime } = await outageWorld(way);
    const [mine, theirs] = await world.clients("me", "them");
    const lease = await mine.acquire("job", { ttl: TTL_MS });
    const waiting = theirs.acquire("job", { wait: "60s" });
    await world.until(() => server().queue.size === 1);
    await stop();
    await world.advance(500);
    await restart();
    await inRealTime(until("it queues again", () => server().queue.size === 1));
    await lease.release();
    await inRealTime(waiting);
    const got = await waiting;
    // A request that was cut off may have been granted and released in between.
    expect([got.fence > lease.fence, got.isHeld()]).toEqual([true, true]);
  });

  it("an outage that lasts: then the signal ends it in time, as unreachable", async () => {
    const { world, cut } = await outageWorld(way);
    const lease = await (await world.client("me")).acquire("job", { ttl: TTL_MS });
    cut();
    await world.advance(TTL_MS - MARGIN_MS);
    expect(lease.signal.reason).toMatchObject({ reason: "unreachable" });
  });
});
