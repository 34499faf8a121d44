/** Documents 000 and 002 over HTTP: both purposes of a mismatch, one lease id, LS_ codes, the count, and why. */
import { describe, expect, it } from "vitest";
import { expectProblem, owner } from "./support/problem.ts";
import { testServer } from "./support/server.ts";

const OTHERS = { name: "a/c", holder: "you", token: "token-of-you" };

describe("000 over HTTP", () => {
  it("PurposeMismatch has lease_id, expected and actual, in the answer and in the audit", async () => {
    const { lease, get } = await testServer();
    const { body: grant } = await lease("acquire", owner);
    const { body } = await lease("use", { ...owner, purpose: "MigrationHandoff" });
    const mismatch = { expected: "MigrationHandoff", actual: "Operation" };
    expect(body).toMatchObject({ code: "LS_PURPOSE_MISMATCH", leaseId: grant.leaseId, ...mismatch });
    const { body: trail } = await get("/v1/audit?order=newest-first&limit=1");
    expect(trail.entries[0]).toMatchObject({
      leaseId: grant.leaseId,
      code: "LS_PURPOSE_MISMATCH",
      reason: "LEASE_PURPOSE_MISMATCH",
      detail: mismatch,
    });
  });

  it("lease_id is the same in the grant, a denial and the view; a denial without a lease has none", async () => {
    const { lease, get } = await testServer();
    const { body: grant } = await lease("acquire", owner);
    expect(grant.lease.leaseId).toBe(grant.leaseId);
    const { body: denied } = await lease("acquire", { ...owner, holder: "you", token: "other" });
    expect(denied).toMatchObject({ code: "LS_HELD", leaseId: grant.leaseId });
    expect((await get("/v1/lease?name=a/b")).body.leaseId).toBe(grant.leaseId);
    expect((await get("/v1/leases")).body.leases[0].leaseId).toBe(grant.leaseId);
    expect((await lease("renew", OTHERS)).body).not.toHaveProperty("leaseId");
  });

  it("active_count: GET /v1/leases/count, of a tenant or of a prefix", async () => {
    const { lease, get } = await testServer();
    await lease("acquire", owner);
    await lease("acquire", OTHERS);
    await lease("acquire", { ...OTHERS, name: "b" });
    const count = async (query: string) => (await get(`/v1/leases/count${query}`)).body;
    expect(await count("")).toEqual({ tenant: "default", prefix: "", active: 3 });
    expect(await count("?prefix=a/")).toEqual({ tenant: "default", prefix: "a/", active: 2 });
    await lease("release", OTHERS);
    expect([(await count("")).active, (await count("?prefix=a/")).active]).toEqual([2, 1]);
    expect((await count("?tenant=other")).active).toBe(0);
  });
});

describe("002 over HTTP", () => {
  it("RENEW and RELEASE without a token are refused, naming the field", async () => {
    const { lease } = await testServer();
    await lease("acquire", owner);
    const { token: _token, ...bare } = owner;
    for (const op of ["renew", "release"]) {
      const answer = await lease(op, bare);
      expectProblem(answer, 400, "INPUT_SCHEMA_INVALID", "LS_INVALID");
      expect(answer.body.field).toBe("token");
    }
  });

  it("explain gives the policy bundle and the decision, audits it, and changes nothing", async () => {
    const { lease, get } = await testServer();
    const { body: grant } = await lease("acquire", owner);
    const { status, body } = await lease("explain", { op: "renew", ...owner, token: "wrong" });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      bundle: {
        leaseExists: true,
        leaseExpired: false,
        ownerMatch: true,
        tokenMatch: false,
        ttlInBounds: true,
        grantEligible: false,
        reason: "LEASE_TOKEN_INVALID",
        reasonCode: 0x4c530011,
      },
      decision: "denied",
      code: "LS_TOKEN_INVALID",
      leaseId: grant.leaseId,
      resumeFromLedgerRequired: false,
    });
    expect((await lease("explain", { op: "release", ...owner })).body).toMatchObject({
      decision: "granted",
      bundle: { grantEligible: true, reason: "OK_POLICY_EVALUATE" },
    });
    expect((await get("/v1/lease?name=a/b")).body).toMatchObject({ state: "held", live: true });
    const { body: trail } = await get("/v1/audit?order=newest-first&limit=2");
    expect(trail.entries).toMatchObject([
      { action: "explain", allowed: true, outcome: "none", detail: { op: "release" } },
      { action: "explain", allowed: false, code: "LS_TOKEN_INVALID", detail: { op: "renew" } },
    ]);
    expect(JSON.stringify(body)).not.toContain(owner.token);
  });

  it("explain refuses what is no command, with the field", async () => {
    const { lease } = await testServer();
    const unknown = await lease("explain", { op: "steal", ...owner });
    expectProblem(unknown, 400, "INPUT_SCHEMA_INVALID", "LS_INVALID");
    expect(unknown.body.field).toBe("op");
    const extra = await lease("explain", { op: "release", ...owner, ttlMs: 1 });
    expectProblem(extra, 400, "INPUT_SCHEMA_INVALID", "LS_INVALID");
  });

  it("explains a ttl that is out of bounds with ttl_in_bounds false", async () => {
    const { lease } = await testServer();
    const { body } = await lease("explain", { op: "acquire", ...owner, ttlMs: 10 ** 12 });
    expect(body).toMatchObject({ decision: "refused", field: "ttlMs", code: "LS_INVALID" });
  });
});
