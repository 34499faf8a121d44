// A caller that gave up, timed out or died at the moment of its grant: the key must be free at once, not when
// the ghost's ttl ends. All clocks are one manual clock; the sockets are real.
import { connect } from "node:net";
import { HttpTransport, ManualEnv, openExecutor, RemoteExecutor } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { World } from "../../../solehold/test/client/suite/index.ts";
import { startProxy } from "../../../solehold/test/engines/index.ts";
import { StableAddress } from "../support/address.ts";
import { testServer, until } from "../support/server.ts";

type Way = "stream" | "http";

async function lossyWorld(way: Way) {
  const env = new ManualEnv();
  const address = await StableAddress.open();
  const proxy = await startProxy({ targetPort: Number(new URL(address.url).port) });
  onTestFinished(async () => await proxy.close());
  // What a server says about itself must not lead around the wire that loses.
  const through = proxy.through(address.url);
  const { url, server } = await testServer({ advertiseUrl: through }, { env });
  address.leadTo(url);
  const world = new World({
    env,
    inLine: () => server.queue.size,
    longestCallMs: () => 5,
    openExecutor: async () =>
      way === "stream"
        ? await openExecutor(through, { env })
        : new RemoteExecutor({ transport: new HttpTransport({ url: new URL(through), env }), env }),
  });
  return { world, server, proxy };
}

describe.each<Way>(["http", "stream"])("over %s, an acquire that", (way) => {
  it("was aborted after it was granted, before the answer came, leaves nothing behind", async () => {
    const { world, server, proxy } = await lossyWorld(way);
    const leases = await world.client("me");
    await leases.inspect("job");
    proxy.dropReplies();
    const controller = new AbortController();
    const acquiring = leases.acquire("job", { ttl: "60s", wait: "20s", signal: controller.signal });
    acquiring.catch(() => undefined);
    await proxy.nextDroppedReply();
    await until("it is granted", async () => (await holderOf(server)) === "me");
    controller.abort(new Error("changed my mind"));
    await expect(acquiring).rejects.toThrow("changed my mind");
    proxy.heal();
    await untilFree(world, server);
  });

  it("ran out of time without an answer leaves nothing behind", async () => {
    const { world, server, proxy } = await lossyWorld(way);
    const leases = await world.client("me");
    await leases.inspect("job");
    proxy.dropReplies();
    const attempt = leases.tryAcquire("job", { ttl: "60s" });
    attempt.catch(() => undefined);
    await until("it is granted", async () => (await holderOf(server)) === "me");
    await expect(world.settled(attempt)).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
      outcome: "unknown",
    });
    proxy.heal();
    await untilFree(world, server);
  });
});

describe("a plain HTTP client with a token of its own", () => {
  it("that dies while it waits leaves nothing behind, even if it was just granted", async () => {
    const { server, url, lease } = await testServer();
    const owner = { name: "job", holder: "owner", token: "owner-token" };
    await lease("acquire", { ...owner, ttlMs: 60_000 });
    const body = JSON.stringify({
      name: "job",
      holder: "ghost",
      token: "ghost-token",
      ttlMs: 60_000,
      waitMs: 20_000,
    });
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(
      `POST /v1/leases/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await until("it waits", () => server.queue.size === 1);
    const { execute } = server.service;
    // The client dies in the very moment of its grant: after the store has it, before the answer leaves.
    server.service.execute = async (request, context) => {
      const outcome = await execute.call(server.service, request, context);
      if (request.op !== "release" || request.next === undefined) return outcome;
      const gone = new Promise((resolve) => socket.once("close", resolve));
      socket.resetAndDestroy();
      await gone;
      await new Promise((resolve) => setTimeout(resolve, 20));
      return outcome;
    };
    await lease("release", owner);
    await until("the queue is empty", () => server.queue.size === 0);
    server.service.execute = execute;
    await until("the key is free", async () => (await holderOf(server)) === null);
    const entries = await server.service.audit.query({ key: "job" });
    expect(entries.slice(-2).map(({ action, holder }) => `${action} ${holder}`)).toEqual([
      "grant ghost",
      "release ghost",
    ]);
  });
});

type Server = Awaited<ReturnType<typeof testServer>>["server"];

async function holderOf({ service }: Server): Promise<string | null> {
  const view = await service.read({ tenant: "default", name: "job" });
  return view?.live === true ? view.holder : null;
}

/** Within moments: far less than the ttl. */
async function untilFree(world: World, server: Server): Promise<void> {
  const beforeMs = world.env.monotonicMs();
  let holder = await holderOf(server);
  while (holder !== null && world.env.monotonicMs() - beforeMs < 5_000) {
    await world.advance(50);
    holder = await holderOf(server);
  }
  expect(holder).toBeNull();
}
