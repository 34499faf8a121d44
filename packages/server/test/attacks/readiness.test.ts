/** /readyz says what a request would find: also with a full audit disk, a hung store, and at a shutdown. */
import { ManualEnv } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { testServer, until } from "../support/server.ts";

describe("readiness", () => {
  it("is denied while the audit cannot be written, and comes back with it", async () => {
    const server = await testServer();
    const { audit } = server.server.service;
    const status = async () => (await server.get("/readyz")).status;
    const { flush } = audit;
    Object.assign(audit, { flush: () => Promise.reject(new Error("disk full at /var/secret")) });
    await until("it is denied", async () => (await status()) === 503);
    const { body } = await server.get("/readyz");
    expect(body.detail).toMatch(/^the audit trail cannot be written/);
    Object.assign(audit, { flush });
    await until("it is back", async () => (await status()) === 200);
  });

  it("does not wait for a store that hangs", async () => {
    const server = await testServer();
    Object.assign(server.server.service, { read: () => new Promise(() => undefined) });
    // Without a limit of its own this answer never comes.
    const { status, body } = await server.get("/readyz");
    expect([status, body.detail]).toEqual([503, expect.stringContaining("does not answer in time")]);
  });

  it("is denied for a while before anything else is, at a shutdown", async () => {
    const server = await testServer({ drainDelayMs: "1000" }, { env: new ManualEnv() });
    void server.server.close();
    await until("it is seen", async () => (await server.get("/readyz")).status === 503);
    expect((await server.lease("acquire", { name: "job", holder: "me" })).status).toBe(200);
  });
});
