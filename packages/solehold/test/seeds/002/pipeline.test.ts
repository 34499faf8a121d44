/** Document 002 through the whole pipeline: what the gate decides becomes true in a store, and stays so. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { decide, exactly, NO_TOKEN_HASH } from "../../../src/core/index.ts";
import { hashToken, type LeaseRequest, MemoryExecutor, StoreExecutor } from "../../../src/executor/index.ts";
import { openStore } from "../../../src/facades/seeds.ts";
import { MemoryStore } from "../../../src/store/index.ts";
import { serviceWorld } from "../../layers/world.ts";

const KEY = { tenant: "acme", name: "wo-1" };
const ask = { key: KEY, holder: "worker-1" } as const;

async function granted(executor = new MemoryExecutor()) {
  const outcome = await executor.execute({ op: "acquire", ...ask });
  if (outcome.kind !== "applied") throw new Error(outcome.kind);
  return { executor, token: outcome.token };
}

describe("002: AT-LEASE-03, the token", () => {
  it.each(["renew", "release", "use", "resume", "handoff"] as const)(
    "%s without one is refused, which is no denial, by the executor and by the service",
    async (op) => {
      const { executor } = await granted();
      const { service, trail } = serviceWorld();
      await service.execute({ op: "acquire", ...ask });
      const request = { op, ...ask, purpose: "Operation", successor: "b", withinMs: 1 } as unknown;
      for (const path of [executor, service]) {
        expect(await path.execute(request as LeaseRequest)).toMatchObject({
          kind: "refused",
          decision: { kind: "refused", reason: "INPUT_SCHEMA_INVALID", field: "token" },
        });
      }
      expect((await trail()).at(-1)).toMatchObject({ action: op, allowed: false, code: "LS_INVALID" });
    },
  );

  it("is cleared by a release, in the store and in the answer", async () => {
    const store = new MemoryStore();
    const { executor, token } = await granted(new StoreExecutor({ store }));
    const released = await executor.execute({ op: "release", ...ask, token });
    expect(released).toMatchObject({
      kind: "applied",
      token: "",
      decision: { lease: { state: "released", tokenHash: NO_TOKEN_HASH } },
    });
    const { records } = await store.read([KEY]);
    expect(records[0]).toMatchObject({ record: { state: "released", tokenHash: NO_TOKEN_HASH } });
    expect(
      JSON.stringify(released, (_name, value) => (typeof value === "bigint" ? `${value}` : value)),
    ).not.toContain(hashToken(token));
  });

  it("a released work order can be released again by its owner, with nothing changed", async () => {
    const { executor, token } = await granted();
    await executor.execute({ op: "release", ...ask, token });
    const before = await executor.read(KEY);
    expect(await executor.execute({ op: "release", ...ask, token })).toMatchObject({
      kind: "applied",
      token: "",
    });
    expect(await executor.read(KEY)).toEqual(before);
    expect(await executor.execute({ op: "release", key: KEY, holder: "worker-2", token })).toMatchObject({
      decision: { reason: "LEASE_NOT_FOUND" },
    });
  });

  it("a release with the idempotency key of another token is not answered from memory", async () => {
    const { executor, token } = await granted();
    const release = { op: "release", ...ask, idempotencyKey: "k-1" } as const;
    await executor.execute({ ...release, token });
    expect(await executor.execute({ ...release, token })).toMatchObject({ decision: { replayed: true } });
    expect(await executor.execute({ ...release, token: "guess" })).toMatchObject({
      decision: { kind: "refused", reason: "IDEMPOTENCY_KEY_REUSED" },
    });
  });
});

describe("002: the hard boundaries", () => {
  it("of 16 evaluators on one snapshot one grant becomes true: the write stands on the very snapshot", async () => {
    const store = new MemoryStore();
    const evaluators = Array.from({ length: 16 }, () => new StoreExecutor({ store }));
    const outcomes = await Promise.all(
      evaluators.map((executor, index) =>
        executor.execute({ op: "acquire", key: KEY, holder: `w-${index}` }),
      ),
    );
    expect(outcomes.filter(({ kind }) => kind === "applied")).toHaveLength(1);
  });

  it("after a restart from persisted rows alone every decision is as before, and a replay is the same answer", async () => {
    const folder = mkdtempSync(join(tmpdir(), "solehold-seed-002-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const open = async () => new StoreExecutor({ store: await openStore(`embedded:${folder}/data`) });
    const first = await open();
    const acquire = { op: "acquire", ...ask, idempotencyKey: "k-1" } as const;
    const granting = await first.execute(acquire);
    const other = { op: "acquire", key: KEY, holder: "worker-2" } as const;
    const denied = await first.execute(other);
    await first.close();
    const second = await open();
    const replayed = await second.execute(acquire);
    expect(replayed).toMatchObject({ kind: "applied", decision: { replayed: true } });
    expect(
      replayed.kind === "applied" && granting.kind === "applied" && replayed.token === granting.token,
    ).toBe(true);
    const deniedAgain = await second.execute(other);
    expect(deniedAgain.kind === "refused" && deniedAgain.decision).toEqual(
      denied.kind === "refused" && denied.decision,
    );
    await second.close();
  });

  it("decides without side effects: frozen inputs, the same bytes", () => {
    const command = {
      op: "acquire",
      ...ask,
      nonce: "n",
      purpose: "Operation",
      ttlMs: 1_000,
      tokenHash: hashToken("t"),
    } as const;
    const snapshot = Object.freeze({ record: null, floor: 0n });
    const { policy } = new MemoryExecutor();
    const text = () =>
      JSON.stringify(decide(Object.freeze(command), snapshot, exactly(1), policy), (_name, value) =>
        typeof value === "bigint" ? `${value}` : value,
      );
    expect(text()).toBe(text());
  });

  it("nothing is called directly: the deciding layer imports nothing but itself, no clock and no randomness", () => {
    const core = join(import.meta.dirname, "../../../src/core");
    for (const file of readdirSync(core)) {
      const source = readFileSync(join(core, file), "utf8");
      const imports = [...source.matchAll(/from "([^"]+)"/g)].map(([, name]) => name);
      expect(imports.filter((name) => !/^\.\/[a-z-]+\.ts$/.test(name ?? ""))).toEqual([]);
      expect(source).not.toMatch(/Date\.now\(|Math\.random\(|setTimeout\(/);
    }
  });

  it("a token is 128 random bits, and the store has its hash alone", async () => {
    const store = new MemoryStore();
    const { token } = await granted(new StoreExecutor({ store }));
    expect(token).toMatch(/^[\w-]{22}$/);
    const { records } = await store.read([KEY]);
    expect(records[0]).toMatchObject({ record: { tokenHash: hashToken(token) } });
    const text = JSON.stringify(records, (_name, value) => (typeof value === "bigint" ? `${value}` : value));
    expect(text).not.toContain(token);
  });

  it("a key of idempotency gets the same stored answer, also after a renewal with a key of its own", async () => {
    const { executor } = { executor: new MemoryExecutor() };
    const acquire = { op: "acquire", ...ask, idempotencyKey: "A" } as const;
    const first = await executor.execute(acquire);
    if (first.kind !== "applied") throw new Error(first.kind);
    const { token } = first;
    await executor.execute({ op: "renew", ...ask, token, idempotencyKey: "B" });
    expect(await executor.execute(acquire)).toMatchObject({ token, decision: { replayed: true } });
  });

  it("explain gives the policy bundle and the decision, and changes nothing", async () => {
    const { executor, token } = await granted();
    const before = await executor.read(KEY);
    expect(await executor.explain({ op: "renew", ...ask, token })).toMatchObject({
      bundle: {
        leaseExists: true,
        leaseExpired: false,
        ownerMatch: true,
        tokenMatch: true,
        ttlInBounds: true,
        grantEligible: true,
        reason: "OK_POLICY_EVALUATE",
      },
      decision: { kind: "granted" },
    });
    expect(await executor.explain({ op: "renew", ...ask, token: "wrong" })).toMatchObject({
      bundle: { ownerMatch: true, tokenMatch: false, grantEligible: false, reason: "LEASE_TOKEN_INVALID" },
      decision: { kind: "denied" },
    });
    expect(await executor.explain({ op: "renew", ...ask } as LeaseRequest)).toMatchObject({
      bundle: null,
      decision: { kind: "refused", field: "token" },
    });
    const after = await executor.read(KEY);
    expect({ ...after, remainingMs: 0 }).toEqual({ ...before, remainingMs: 0 });
  });
});
