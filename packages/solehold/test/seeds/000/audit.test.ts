/** Document 000 through the whole pipeline: what decisions, views and the audit trail say about a lease that is refused. */
import { describe, expect, it } from "vitest";
import { KEY, SECOND_MS, serviceWorld } from "../../layers/world.ts";
import { service, settled } from "./world.ts";

const LEASE_ID = "default/lease-1@1";
const ask = { key: KEY, holder: "holder" } as const;

describe("000: PurposeMismatch", () => {
  it("has expected and actual in the decision and in the audit", async () => {
    const { service: leases, grant, trail } = serviceWorld();
    const { token } = await grant("Operation", 60);
    const outcome = await leases.execute({ op: "use", ...ask, token, purpose: "MigrationHandoff" });
    const mismatch = { expected: "MigrationHandoff", actual: "Operation" };
    expect(outcome).toMatchObject({ decision: { kind: "denied", fence: 1n, mismatch } });
    expect((await trail()).at(-1)).toMatchObject({ leaseId: LEASE_ID, detail: mismatch });
  });

  it("has them for an acquire, too, that asks for another purpose with its token, and for no other denial", async () => {
    const { service: leases, grant } = serviceWorld();
    const { token } = await grant("Operation", 60);
    const again = await leases.execute({ op: "acquire", ...ask, token, purpose: "StateWrite" });
    const mismatch = { expected: "StateWrite", actual: "Operation" };
    expect(again).toMatchObject({ decision: { reason: "LEASE_PURPOSE_MISMATCH", mismatch } });
    const other = await leases.execute({ op: "acquire", key: KEY, holder: "other", purpose: "StateWrite" });
    expect(other).toMatchObject({ decision: { reason: "LEASE_HELD_BY_OTHER" } });
    expect(other).not.toHaveProperty("decision.mismatch");
  });

  it("is in the decisions of the facade", async () => {
    const { leases, env } = service();
    const lease = await leases.grant("worker-1", "Operation", 60);
    await settled(leases.useLease(lease, "StateWrite"));
    await env.advance(60 * SECOND_MS);
    expect((await leases.decisions()).map(({ action }) => action)).toEqual(["grant", "use"]);
    expect((await leases.decisions()).at(-1)).toMatchObject({
      leaseId: lease.leaseId,
      code: "LS_PURPOSE_MISMATCH",
      expected: "StateWrite",
      actual: "Operation",
    });
  });
});

describe("000: lease_id", () => {
  it("is the same text in the grant, in every denial, in the view and in the audit", async () => {
    const { service: leases, grant, trail, env } = serviceWorld();
    const lease = await grant("Operation", 60);
    expect((await leases.read(KEY))?.leaseId).toBe(LEASE_ID);
    expect((await leases.list({ tenant: "default", prefix: "", limit: 10 })).leases[0]?.leaseId).toBe(
      LEASE_ID,
    );
    await lease.use("StateWrite");
    await leases.execute({ op: "acquire", key: KEY, holder: "other" });
    await env.advance(60 * SECOND_MS);
    await lease.use("Operation");
    await lease.renew();
    await lease.revoke();
    await lease.revoke();
    await lease.renew();
    const entries = await trail();
    const ids = entries.filter(({ action }) => action !== "expire").map(({ leaseId }) => leaseId);
    expect(ids).toEqual(Array.from({ length: 8 }, () => LEASE_ID));
  });

  it("is the key alone where nothing was granted under it", async () => {
    const { service: leases, trail } = serviceWorld();
    await leases.execute({ op: "renew", ...ask, token: "none" });
    expect((await trail()).at(-1)).toMatchObject({ leaseId: "default/lease-1", allowed: false });
  });

  it("fits into the audit for the longest tenant, name and fence", async () => {
    const { service: leases, trail } = serviceWorld();
    const key = { tenant: "t".repeat(64), name: "n".repeat(256) };
    await leases.execute({ op: "acquire", key, holder: "holder", term: 2n ** 64n - 1n });
    const [entry] = await trail();
    expect(entry?.leaseId).toMatch(/^t{64}\/n{256}@\d{39}$/);
    expect(entry).not.toHaveProperty("detail.sanitised");
  });
});

describe("000: LS_ codes", () => {
  it("are in the audit beside the reason, for every attempt", async () => {
    const { grant, trail, env } = serviceWorld();
    const lease = await grant("Operation", 60);
    await lease.use("StateWrite");
    await env.advance(60 * SECOND_MS);
    await lease.use("Operation");
    await lease.renew();
    await lease.revoke();
    await lease.revoke();
    const said = (await trail()).map(({ action, code, reason }) => `${action} ${code} ${reason}`);
    expect(said.filter((line) => !line.startsWith("expire"))).toEqual([
      "grant LS_OK OK_DECISION_COMPUTE",
      "use LS_PURPOSE_MISMATCH LEASE_PURPOSE_MISMATCH",
      "use LS_STALE_USE LEASE_EXPIRED",
      "renew LS_EXPIRED LEASE_EXPIRED",
      "revoke LS_OK OK_DECISION_COMPUTE",
      "revoke LS_ALREADY_REVOKED LEASE_ALREADY_REVOKED",
    ]);
  });
});
