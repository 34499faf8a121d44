import { describe, expect, it } from "vitest";
import {
  type Approval,
  ApprovalPolicy,
  type ApprovalPolicyFile,
  type SigningKeyPair,
  signApproval,
  signingKeyFromSeed,
} from "../../src/approvals/index.ts";
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { approvalRequestFor, type GuardedCommand, LeaseService } from "../../src/layers/index.ts";
import { MemoryStore } from "../../src/store/index.ts";
import { seen } from "./world.ts";

const KEY = { tenant: "default", name: "migrations/orders" };
const NONCE = "nonce-of-this-request";
const HOUR_MS = 3_600_000;

const KEYS: Readonly<Record<string, SigningKeyPair>> = Object.fromEntries(
  ["alice", "bob", "carol", "mallory"].map((name, index) => [
    name,
    signingKeyFromSeed(Buffer.alloc(32, index + 1)),
  ]),
);

function policyFile(overrides: Partial<ApprovalPolicyFile> = {}): ApprovalPolicyFile {
  const signer = (signerId: string) => ({
    signerId,
    keys: [{ publicKey: (KEYS[signerId] as SigningKeyPair).publicKey }],
  });
  return {
    signers: ["alice", "bob", "carol"].map(signer),
    rules: [
      {
        pattern: "migrations/*",
        tier: "Dangerous",
        purposes: ["MigrationHandoff"],
        minTtlMs: 1_000,
        maxTtlMs: 600_000,
      },
      { pattern: "reports/*", tier: "Standard", actions: ["revoke"] },
    ],
    ...overrides,
  };
}

function guardedWorld() {
  const env = new ManualEnv();
  const store = new MemoryStore({ env });
  const defined = ApprovalPolicy.define(policyFile());
  if (!defined.ok) throw new Error(JSON.stringify(defined.problems));
  const audit = new MemoryAuditTrail({ capacity: 1_000 });
  const start = (): LeaseService =>
    new LeaseService({
      executor: new StoreExecutor({ store, env }),
      audit,
      env,
      approvalPolicy: defined.policy,
    });
  const nowMs = (): number => store.now();
  const sign = (
    names: readonly string[],
    command: GuardedCommand,
    tier = "Dangerous",
    nonce = NONCE,
  ): Approval[] =>
    names.map((name) => {
      const window = { notBeforeMs: nowMs() - 1_000, notAfterMs: nowMs() + HOUR_MS };
      const payload = { ...approvalRequestFor(command, tier, nonce), ...window };
      return signApproval((KEYS[name] as SigningKeyPair).privateKey, payload, name);
    });
  return { env, store, audit, start, sign };
}

const REQUEST = { key: KEY, holder: "deployer", purpose: "MigrationHandoff", ttlMs: 60_000 } as const;
const COMMAND: GuardedCommand = { action: "acquire", ...REQUEST };
const EVERYBODY = ["alice", "bob", "carol"];

describe("a key under a Dangerous rule", () => {
  it("is denied without approvals, granted with three, and the same approvals are refused the second time", async () => {
    const { start, sign, env } = guardedWorld();
    const service = start();
    const without = await service.execute({ ...REQUEST, op: "acquire" });
    expect(seen(without)).toMatchObject({
      allowed: false,
      reason: "QUORUM_NOT_MET",
      code: "LS_QUORUM_NOT_MET",
    });
    expect(without.quorum).toMatchObject({ tier: "Dangerous", required: 3, received: 0, passed: false });
    const approval = { nonce: NONCE, approvals: sign(EVERYBODY, COMMAND) };
    const granted = await service.execute({ op: "acquire", ...REQUEST, approval });
    expect(seen(granted).allowed).toBe(true);
    if (granted.kind !== "applied") throw new Error("granted");
    await service.execute({ op: "release", key: KEY, holder: "deployer", token: granted.token });
    await env.advance(1);
    const again = await service.execute({ op: "acquire", ...REQUEST, approval });
    expect(seen(again).reason).toBe("QUORUM_NOT_MET");
    expect(again.quorum?.failures.map(({ code }) => code)).toContain("LC_APPROVAL_REPLAYED");
  });

  it("refuses the second use after a restart too", async () => {
    const { start, sign } = guardedWorld();
    const approval = { nonce: NONCE, approvals: sign(EVERYBODY, COMMAND) };
    const first = await start().execute({ op: "acquire", ...REQUEST, approval });
    if (first.kind !== "applied") throw new Error("granted");
    const restarted = start();
    await restarted.execute({ op: "release", key: KEY, holder: "deployer", token: first.token });
    expect(seen(await restarted.execute({ op: "acquire", ...REQUEST, approval })).reason).toBe(
      "QUORUM_NOT_MET",
    );
  });

  it("gives the same grant to the same attempt when its answer got lost", async () => {
    const { start, sign } = guardedWorld();
    const service = start();
    const approval = { nonce: NONCE, approvals: sign(EVERYBODY, COMMAND) };
    const attempt = { ...REQUEST, token: "the-callers-own-secret" };
    const first = await service.execute({ op: "acquire", ...attempt, approval });
    const repeated = await start().execute({ op: "acquire", ...attempt, approval });
    expect([seen(first).allowed, seen(repeated).allowed]).toEqual([true, true]);
    expect(seen(repeated).fence).toBe(seen(first).fence);
  });

  it("lets approvals be presented again when the key was taken and nothing was granted", async () => {
    const { start, sign, env } = guardedWorld();
    const service = start();
    const other = { ...REQUEST, holder: "other" };
    const taken = sign(EVERYBODY, { action: "acquire", ...other }, "Dangerous", "nonce-of-the-other-one");
    await service.execute({
      op: "acquire",
      ...other,
      approval: { nonce: "nonce-of-the-other-one", approvals: taken },
    });
    const approval = { nonce: NONCE, approvals: sign(EVERYBODY, COMMAND) };
    expect(seen(await service.execute({ op: "acquire", ...REQUEST, approval })).reason).toBe(
      "LEASE_HELD_BY_OTHER",
    );
    await env.advance(60_000);
    expect(seen(await service.execute({ op: "acquire", ...REQUEST, approval })).allowed).toBe(true);
  });

  it.each([
    ["two of three", ["alice", "bob"]],
    ["one signer three times", ["alice", "alice", "alice"]],
    ["a stranger among them", ["alice", "bob", "mallory"]],
  ])("is denied with %s", async (_what, names) => {
    const { start, sign } = guardedWorld();
    const outcome = await start().execute({
      op: "acquire",
      ...REQUEST,
      approval: { nonce: NONCE, approvals: sign(names, COMMAND) },
    });
    expect(seen(outcome).reason).toBe("QUORUM_NOT_MET");
  });

  it.each<[string, Partial<GuardedCommand>]>([
    ["holder", { holder: "somebody-else" }],
    ["ttl", { ttlMs: 61_000 }],
    ["key", { key: { tenant: "default", name: "migrations/users" } }],
    ["tenant", { key: { tenant: "other", name: KEY.name } }],
    ["action", { action: "revoke" }],
  ])("is denied with approvals for another %s", async (_field, altered) => {
    const { start, sign } = guardedWorld();
    const approvals = sign(EVERYBODY, { ...COMMAND, ...altered });
    const outcome = await start().execute({
      op: "acquire",
      ...REQUEST,
      approval: { nonce: NONCE, approvals },
    });
    expect(seen(outcome).reason).toBe("QUORUM_NOT_MET");
    expect(outcome.quorum?.failures.map(({ code }) => code)).toContain("LC_INVALID_SIGNATURE");
  });

  it("is denied with approvals that have expired", async () => {
    const { start, sign, env } = guardedWorld();
    const approvals = sign(EVERYBODY, COMMAND);
    await env.advance(HOUR_MS);
    const outcome = await start().execute({
      op: "acquire",
      ...REQUEST,
      approval: { nonce: NONCE, approvals },
    });
    expect(outcome.quorum?.failures.map(({ code }) => code)).toContain("LC_APPROVAL_EXPIRED");
  });

  it("needs approvals to be revoked and broken as well", async () => {
    const { start, sign } = guardedWorld();
    const service = start();
    await service.execute({
      op: "acquire",
      ...REQUEST,
      approval: { nonce: NONCE, approvals: sign(EVERYBODY, COMMAND) },
    });
    expect(seen(await service.execute({ op: "revoke", key: KEY })).reason).toBe("QUORUM_NOT_MET");
    expect(seen(await service.execute({ op: "break", key: KEY, periodMs: 1_000 })).reason).toBe(
      "QUORUM_NOT_MET",
    );
    const approvals = sign(EVERYBODY, { action: "revoke", key: KEY }, "Dangerous", "nonce-of-the-revoke");
    const revoked = await service.execute({
      op: "revoke",
      key: KEY,
      approval: { nonce: "nonce-of-the-revoke", approvals },
    });
    expect(seen(revoked).allowed).toBe(true);
  });

  it("is refused for a purpose or a ttl that its rule does not allow, naming the field", async () => {
    const { start } = guardedWorld();
    const service = start();
    const wrongPurpose = await service.execute({ op: "acquire", ...REQUEST, purpose: "Operation" });
    expect(wrongPurpose).toMatchObject({ decision: { kind: "refused", field: "purpose" } });
    const wrongTtl = await service.execute({ op: "acquire", ...REQUEST, ttlMs: 700_000 });
    expect(wrongTtl).toMatchObject({ decision: { kind: "refused", field: "ttlMs" } });
  });

  it("writes who approved, and what was wrong, into the audit, and never a signature", async () => {
    const { start, sign, audit } = guardedWorld();
    const service = start();
    const approvals = sign(EVERYBODY, COMMAND);
    await service.execute({ ...REQUEST, op: "acquire" });
    await service.execute({ op: "acquire", ...REQUEST, approval: { nonce: NONCE, approvals } });
    const [denied, granted] = await audit.query();
    expect(denied?.detail).toMatchObject({
      tier: "Dangerous",
      required: 3,
      received: 0,
      failures: "LC_BELOW_QUORUM",
    });
    expect(granted?.detail).toMatchObject({ quorumPassed: true, signers: "alice bob carol" });
    const text = JSON.stringify(await audit.query());
    for (const { signature } of approvals) expect(text).not.toContain(signature);
  });
});

describe("other keys", () => {
  it("need no approval, and a rule for revoke alone leaves acquire free", async () => {
    const { start } = guardedWorld();
    const service = start();
    const free = { tenant: "default", name: "anything" };
    expect(seen(await service.execute({ op: "acquire", key: free, holder: "h", ttlMs: 1_000 })).allowed).toBe(
      true,
    );
    const report = { tenant: "default", name: "reports/nightly" };
    expect(
      seen(await service.execute({ op: "acquire", key: report, holder: "h", ttlMs: 1_000 })).allowed,
    ).toBe(true);
    expect(seen(await service.execute({ op: "revoke", key: report })).reason).toBe("QUORUM_NOT_MET");
  });
});

describe("a policy file", () => {
  it.each<[string, unknown, RegExp]>([
    ["is no object", [], /policy/],
    ["has no rules", policyFile({ rules: [] }), /rules/],
    ["names an unknown tier", policyFile({ rules: [{ pattern: "*", tier: "Scary" }] }), /rules\[0\]\.tier/],
    ["names a stranger", policyFile({ rules: [{ pattern: "*", tier: "Risky", signers: ["eve"] }] }), /eve/],
    [
      "asks for more than it has",
      policyFile({ thresholds: { standard: 1, risky: 2, dangerous: 4 } }),
      /dangerous/,
    ],
    [
      "has a wrong action",
      policyFile({ rules: [{ pattern: "*", tier: "Risky", actions: ["fly"] }] }),
      /actions/,
    ],
    [
      "has bounds the wrong way round",
      policyFile({ rules: [{ pattern: "*", tier: "Risky", minTtlMs: 9, maxTtlMs: 8 }] }),
      /maxTtlMs/,
    ],
  ])("that %s is refused, naming the place", (_what, file, place) => {
    const defined = ApprovalPolicy.define(file);
    expect(defined.ok).toBe(false);
    if (!defined.ok)
      expect(defined.problems.map(({ field, message }) => `${field} ${message}`).join("\n")).toMatch(place);
  });

  it("matches patterns literally but for the star, and the first rule wins", () => {
    const rules = [
      { pattern: "a.b/*", tier: "Risky" },
      { pattern: "*", tier: "Standard", tenant: "acme" },
    ];
    const defined = ApprovalPolicy.define(policyFile({ rules }));
    if (!defined.ok) throw new Error("defined");
    const tierOf = (tenant: string, name: string) => defined.policy.ruleFor(tenant, name)?.tier ?? null;
    expect(tierOf("acme", "a.b/c/d")).toBe("Risky");
    expect(tierOf("acme", "aXb/c")).toBe("Standard");
    expect(tierOf("other", "aXb/c")).toBeNull();
  });
});

describe("a store that does not answer the check of approvals", () => {
  it("ends the command as not done, instead of holding it for ever", async () => {
    const { env, store, start, sign } = guardedWorld();
    store.read = () => new Promise(() => undefined);
    const service = start();
    const approval = { nonce: NONCE, approvals: sign(EVERYBODY, COMMAND) };
    const asked = service.execute({ op: "acquire", ...REQUEST, approval });
    await env.advance(60_000);
    expect(await asked).toMatchObject({ kind: "unsettled", outcome: "not-applied" });
  });
});
