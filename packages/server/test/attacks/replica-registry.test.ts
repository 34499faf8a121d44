/** The server's own tenant says where clients send their API keys: no caller may write there. */
import { describe, expect, it } from "vitest";
import { ATTEMPTS, bearer, keyedServer, owner } from "../support/keys.ts";
import { until } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

const EVIL = { tenant: "solehold", name: "replicas/evil" };
const COMMANDS = ["acquire", "renew", "release", "use", "resume", "handoff", "revoke", "break"] as const;
const REFUSED = { reason: "FORBIDDEN", detail: expect.stringContaining("the server's own") };

/** More than any command needs, but for its own fields. */
const BODIES: { readonly [op in (typeof COMMANDS)[number]]: object } = {
  acquire: { holder: "evil", note: "http://127.0.0.1:1 1000000" },
  renew: owner,
  release: owner,
  use: { ...owner, purpose: "Operation" },
  resume: owner,
  handoff: { ...owner, successor: "you", withinMs: 1 },
  revoke: {},
  break: { periodMs: 1 },
};

describe("the server's own tenant", () => {
  it("takes no command from anybody, over HTTP or the stream, not even from an administrator", async () => {
    const server = await keyedServer([{}, { tenants: ["solehold"] }]);
    await until("the replica is announced", async () => (await replicas(server)).length === 1);
    const before = await replicas(server);
    for (const key of server.keys) {
      const stream = await TestStream.open(server.url, bearer(key));
      for (const op of COMMANDS) {
        for (const target of [EVIL, { ...EVIL, name: "collection" }]) {
          const body = { ...target, ...BODIES[op] };
          const overHttp = await server.lease(op, body, bearer(key));
          expect([op, overHttp.status, overHttp.body]).toEqual([op, 403, expect.objectContaining(REFUSED)]);
          const [overStream] = await stream.ask({ op, ...body });
          expect([op, overStream.status, overStream.body]).toEqual([
            op,
            403,
            expect.objectContaining(REFUSED),
          ]);
        }
      }
      const many = await server.lease("renew", { leases: [{ ...EVIL, ...owner }] }, bearer(key));
      expect(many.body.results[0].status).toBe(403);
    }
    expect(await replicas(server)).toEqual(before);
  });

  it("is read by nobody but an administrator, whatever way of reading", async () => {
    const server = await keyedServer([{}, { actions: ["read", "repair", "audit", "coordinate"] }]);
    const [administrator, reader] = server.keys;
    const reads = ATTEMPTS.filter(({ action }) => !(COMMANDS as readonly string[]).includes(action));
    expect(reads.length).toBeGreaterThan(4);
    for (const { title, run } of reads) {
      expect([title, (await run(server, EVIL, bearer(reader))).status]).toEqual([title, 403]);
      expect([title, (await run(server, EVIL, bearer(administrator))).status]).not.toEqual([title, 403]);
    }
    expect((await server.get("/v1/watch?tenant=solehold", bearer(reader))).status).toBe(403);
    const stream = await TestStream.open(server.url, bearer(reader));
    const inStream = await stream.ask(
      { op: "watch", tenant: "solehold" },
      { op: "list", tenant: "solehold" },
      { op: "get", ...EVIL },
    );
    expect(inStream.map(({ status }) => status)).toEqual([403, 403, 403]);
  });

  it("is closed to callers of a server without keys, too", async () => {
    const server = await keyedServer([]);
    expect((await server.lease("acquire", { ...EVIL, ...BODIES.acquire })).status).toBe(403);
    expect((await server.get("/v1/leases?tenant=solehold")).status).toBe(200);
  });
});

async function replicas(server: Awaited<ReturnType<typeof keyedServer>>): Promise<readonly object[]> {
  return (await server.get("/v1/replicas", bearer(server.keys[0]))).body.replicas;
}
