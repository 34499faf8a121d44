// How soon the end of a lease is announced, in the store's time: to those who watch, and in the audit. Server
// and test share a manual clock, so the figures are exact.
import { ManualEnv } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { World } from "../../solehold/test/client/suite/index.ts";
import { Dice } from "./support/hostile.ts";
import { type TestServer, tempFolder, testServer, whileTimeRuns } from "./support/server.ts";
import { TestStream } from "./support/stream.ts";

const WITHIN_MS = 100;

/** The clock moves in small steps, and after each the server may do what fell due. */
function clockOf(env: ManualEnv): World {
  return new World({ env, openExecutor: () => Promise.reject(new Error("nobody acquires here")) });
}

async function announced(server: TestServer): Promise<readonly string[]> {
  const { body } = await server.get("/v1/audit?action=expire&limit=1000");
  return body.entries.map(({ key }: { key: string }) => key);
}

describe("the end of a lease that nobody ended", () => {
  it(`is announced within ${WITHIN_MS} ms, to watchers and in the audit, and never before`, async () => {
    const env = new ManualEnv();
    const server = await testServer({}, { env });
    const stream = await TestStream.open(server.url);
    await stream.ask({ op: "watch", prefix: "job/" });
    const dice = new Dice(3);
    const expiries = new Map<string, number>();
    for (let index = 0; index < 200; index += 1) {
      const owner = { name: `job/${index}`, holder: "h", token: `token-${index}` };
      const { body } = await server.lease("acquire", { ...owner, ttlMs: 500 + dice.below(3_000) });
      expiries.set(owner.name, body.lease.expiresAtMs);
      if (index % 4 === 1) {
        const renewed = await server.lease("renew", { ...owner, ttlMs: 3_500 });
        expiries.set(owner.name, renewed.body.lease.expiresAtMs);
      } else if (index % 4 === 2) {
        await server.lease("release", owner);
        expiries.delete(owner.name);
      }
    }
    const clock = clockOf(env);
    for (let steps = 0; steps < 45; steps += 1) {
      await clock.advance(WITHIN_MS);
      const nowMs = server.server.service.executor.storeNowMs();
      const names = new Set(stream.events.filter(({ kind }) => kind === "expired").map(({ name }) => name));
      for (const [name, expiresAtMs] of expiries) {
        if (expiresAtMs <= nowMs - WITHIN_MS) expect([name, names.has(name)]).toEqual([name, true]);
        if (expiresAtMs > nowMs) expect([name, names.has(name)]).toEqual([name, false]);
      }
    }
    const seen = stream.events.filter(({ kind }) => kind === "expired").map(({ name }) => name);
    expect(seen.sort()).toEqual([...expiries.keys()].sort());
    expect([...(await announced(server))].sort()).toEqual([...expiries.keys()].sort());
  });

  it("is announced after a restart too, for leases that nobody has asked for since", async () => {
    const env = new ManualEnv();
    const dataDir = await tempFolder();
    const flags = { store: `embedded:${dataDir}/data` };
    const first = await testServer(flags, { dataDir, env });
    await first.lease("acquire", { name: "job", holder: "h", ttlMs: 20_000 });
    await whileTimeRuns(env, first.server.close());
    const second = await testServer(flags, { dataDir, env });
    const stream = await TestStream.open(second.url);
    await stream.ask({ op: "watch" });
    const { body } = await second.get("/v1/lease?name=job");
    const clock = clockOf(env);
    await clock.advance(body.remainingMs - 1);
    expect(stream.events).toEqual([]);
    await clock.advance(WITHIN_MS + 1);
    expect(stream.events).toMatchObject([{ kind: "expired", name: "job", lease: { live: false } }]);
    expect(await announced(second)).toEqual(["job"]);
  });
});
