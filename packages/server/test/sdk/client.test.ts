// What is special about leases over a server: one queue for all its clients, and a server that goes away. That
// they are the same Leases as everywhere is the suite's to show.
import { connect, type Leases, LeaseUnavailableError } from "solehold";
import { HttpTransport, Leases as LeasesOver, RemoteExecutor, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { startProxy } from "../../../solehold/test/engines/index.ts";
import { testServer } from "../support/server.ts";

type Way = "stream" | "http";

async function clientOf(url: string, way: Way, holder: string): Promise<Leases> {
  const leases =
    way === "stream"
      ? await connect(url, { holder })
      : new LeasesOver({
          executor: new RemoteExecutor({
            transport: new HttpTransport({ url: new URL(url), env: realEnv }),
            env: realEnv,
          }),
          env: realEnv,
          holder,
        });
  onTestFinished(async () => await leases.close());
  return leases;
}

describe.each<Way>(["stream", "http"])("Leases over a server, by %s", (way) => {
  it("a waiter gets the lease as soon as it is released, in the order of arrival over all clients", async () => {
    const { url, server } = await testServer();
    const holder = await clientOf(url, way, "holder");
    const lease = await holder.acquire("job", { ttl: "30s" });
    const order: string[] = [];
    const waiting: Promise<void>[] = [];
    for (const name of ["first", "second", "third"]) {
      const leases = await clientOf(url, way, name);
      const before = server.queue.size;
      waiting.push(
        leases.run("job", { wait: "2m", ttl: "30s" }, () => {
          order.push(name);
        }),
      );
      await until(() => server.queue.size > before);
    }
    await lease.release();
    await Promise.all(waiting);
    expect(order).toEqual(["first", "second", "third"]);
  });

  it("a waiter learns who holds the lease and where it stands", async () => {
    const { url, server } = await testServer();
    const lease = await (await clientOf(url, way, "holder")).acquire("job", { ttl: "30s" });
    const ahead = (await clientOf(url, way, "ahead")).acquire("job", { wait: "2m" });
    await until(() => server.queue.size === 1);
    const details = new Promise<object>((onWaiting) => {
      clientOf(url, way, "me").then((leases) =>
        leases.run("job", { wait: "2m", onWaiting }, () => undefined),
      );
    });
    expect(await details).toMatchObject({ holder: "holder", position: 1, heldUntilMs: expect.any(Number) });
    await lease.release();
    await (await ahead).release();
    await until(() => server.queue.size === 0);
  });

  it("a waiter that is aborted leaves the queue at once and holds nobody up", async () => {
    const { url, server } = await testServer();
    const [mine, theirs] = [await clientOf(url, way, "me"), await clientOf(url, way, "them")];
    const lease = await mine.acquire("job", { ttl: "30s" });
    const controller = new AbortController();
    const gaveUp = mine.acquire("job", { wait: "2m", signal: controller.signal });
    await until(() => server.queue.size === 1);
    const patient = theirs.acquire("job", { wait: "2m" });
    await until(() => server.queue.size === 2);
    controller.abort(new Error("changed my mind"));
    await expect(gaveUp).rejects.toThrow("changed my mind");
    await until(() => server.queue.size === 1);
    await lease.release();
    expect((await patient).fence).toBeGreaterThan(lease.fence);
  });
});

describe("a server that goes away", () => {
  it("for good ends the lease in time, as unreachable, without an unhandled rejection", async () => {
    const { url, server } = await testServer();
    const leases = await clientOf(url, "stream", "me");
    const lease = await leases.acquire("job", { ttl: 700 });
    await server.close();
    await new Promise((resolve) => lease.signal.addEventListener("abort", resolve, { once: true }));
    expect(lease.signal.reason).toMatchObject({ reason: "unreachable" });
    await expect(leases.tryAcquire("other")).rejects.toBeInstanceOf(LeaseUnavailableError);
  });

  it("loses the answer of an applied acquire: the caller ends with that grant, not locked out", async () => {
    const { url } = await testServer();
    const proxy = await startProxy({ targetPort: Number(new URL(url).port) });
    onTestFinished(async () => await proxy.close());
    const leases = await clientOf(proxy.through(url), "http", "me");
    await leases.inspect("job");
    proxy.dropReplies();
    const acquiring = leases.acquire("job", { ttl: "60s", wait: "2m" });
    await proxy.nextDroppedReply();
    proxy.heal();
    const lease = await acquiring;
    expect((await leases.inspect("job"))?.fence).toBe(lease.fence);
    lease.assertHeld();
  });

  it("is named in an error that says what to do", async () => {
    const leases = await clientOf("http://127.0.0.1:1", "stream", "me");
    await expect(leases.tryAcquire("job")).rejects.toThrow(/no Solehold server answers.*solehold serve/);
    await expect(connect("http://")).rejects.toThrow(/must be http:\/\/host:port/);
  });
});

/** Looks again with every turn of the event loop until it is so. */
async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 120_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error("it did not come about");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
