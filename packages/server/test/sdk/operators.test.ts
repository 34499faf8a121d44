/** An operator's command through a server whose answer gets lost: it is repeated only where it cannot strike the next holder. */
import { Leases, StoreError } from "solehold";
import { HttpTransport, RemoteExecutor, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { testServer } from "../support/server.ts";

/** The first answer to an operator's command is lost, after `meanwhile` has happened. */
async function lossyWorld() {
  const { url, server } = await testServer();
  const transport = new HttpTransport({ url: new URL(url), env: realEnv });
  const send = transport.send.bind(transport);
  const world = { sent: 0, meanwhile: async (): Promise<void> => undefined };
  transport.send = async (request) => {
    const answer = await send(request);
    if (!/\/(revoke|break)$/.test(request.path)) return answer;
    world.sent += 1;
    if (world.sent > 1) return answer;
    await world.meanwhile();
    throw new Error("the connection was cut");
  };
  const leases = new Leases({ executor: new RemoteExecutor({ transport, env: realEnv }), holder: "me" });
  onTestFinished(async () => await leases.close());
  return { world, leases, server };
}

describe.each(["revoke", "break"] as const)("%s whose answer was lost", (op) => {
  it("does not strike the next holder: without a fence it ends as unknown", async () => {
    const { world, leases } = await lossyWorld();
    const first = await leases.acquire("job", { ttl: "60s", holder: "first" });
    world.meanwhile = async () => {
      await first.release();
      await leases.acquire("job", { ttl: "60s", holder: "next" });
    };
    const struck = op === "revoke" ? leases.revoke("job") : leases.break("job", { period: 0 });
    await expect(struck).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE", outcome: "unknown" });
    const view = await leases.inspect("job");
    expect(view).toMatchObject({ holder: "next", state: "held", breakAtMs: null });
  });

  it("with a fence is repeated, and finds itself done", async () => {
    const { world, leases } = await lossyWorld();
    const { fence } = await leases.acquire("job", { ttl: "60s" });
    await (op === "revoke" ? leases.revoke("job", { fence }) : leases.break("job", { period: 0, fence }));
    expect(world.sent).toBe(2);
    const view = await leases.inspect("job");
    expect(op === "revoke" ? view?.state : view?.breakAtMs).not.toBe(op === "revoke" ? "held" : null);
  });

  it("sent twice by a proxy, and answered by the copy that failed, ends as unknown and is not sent again", async () => {
    const { url, server } = await testServer();
    const transport = new HttpTransport({ url: new URL(url), env: realEnv });
    const send = transport.send.bind(transport);
    let sent = 0;
    transport.send = async (request) => {
      if (!/\/(revoke|break)$/.test(request.path)) return await send(request);
      sent += 1;
      await send(request);
      const { store } = server.service.executor;
      const unreachable = async () => {
        throw new StoreError("unreachable", "gone", { outcome: "not-applied" });
      };
      const works = { read: store.read.bind(store), apply: store.apply.bind(store) };
      Object.assign(store, { read: unreachable, apply: unreachable });
      const answer = await send(request);
      Object.assign(store, works);
      expect(answer).toMatchObject({ status: 503, body: { outcome: "not-applied" } });
      return answer;
    };
    const leases = new Leases({ executor: new RemoteExecutor({ transport, env: realEnv }), holder: "me" });
    onTestFinished(async () => await leases.close());
    await leases.acquire("job", { ttl: "60s" });
    const struck = op === "revoke" ? leases.revoke("job") : leases.break("job", { period: 0 });
    await expect(struck).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE", outcome: "unknown" });
    expect(sent).toBe(1);
  });
});
