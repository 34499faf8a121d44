// The commands behind Leases, as a program that keeps tokens itself calls them.
import { describe, expect, it } from "vitest";
import type { CommandOutcome } from "../../../src/executor/index.ts";
import type { OpenWorld } from "./world.ts";

const KEY = { tenant: "default", name: "job" };
const OWNER = { key: KEY, holder: "me", token: "own-token" };

function denied(outcome: CommandOutcome): string {
  return outcome.kind === "refused" ? outcome.decision.reason : outcome.kind;
}

function generationOf(outcome: CommandOutcome): bigint | null {
  return outcome.kind === "applied" ? outcome.decision.lease.generation : null;
}

export function describeCommands(open: OpenWorld): void {
  describe("commands with a token of one's own", () => {
    it("acquire repeated finds the same grant; another token does not", async () => {
      const { manager } = await (await open()).client("me");
      const first = await manager.acquire({ ...OWNER, ttlMs: 10_000 });
      const again = await manager.acquire({ ...OWNER, ttlMs: 10_000 });
      for (const outcome of [first, again]) {
        expect(outcome).toMatchObject({ kind: "applied", token: "own-token" });
      }
      expect(generationOf(again)).toBe(generationOf(first));
      const other = await manager.acquire({ ...OWNER, token: "another", ttlMs: 10_000 });
      expect(denied(other)).toBe("LEASE_HELD_BY_SELF");
    });

    it("use allows the granted purpose, and only with the token, while it lasts", async () => {
      const world = await open();
      const { manager } = await world.client("me");
      await manager.acquire({ ...OWNER, ttlMs: 10_000, purpose: "StateWrite" });
      const use = async (change: object = {}): Promise<string> =>
        denied(await manager.use({ ...OWNER, purpose: "StateWrite", ...change }));
      expect(await use()).toBe("applied");
      expect(await use({ purpose: "Operation" })).toBe("LEASE_PURPOSE_MISMATCH");
      expect(await use({ token: "another" })).toBe("LEASE_TOKEN_INVALID");
      expect(await use({ holder: "them" })).toBe("LEASE_HELD_BY_OTHER");
      expect(await use({ generation: 2n })).toBe("LEASE_TOKEN_INVALID");
      await world.advance(10_000);
      expect(await use()).toBe("LEASE_EXPIRED");
    });

    it("use after a takeover wants the work to be rebuilt first", async () => {
      const world = await open();
      const { manager } = await world.client("me");
      await manager.acquire({ key: KEY, holder: "dead", token: "old", ttlMs: 1_000 });
      await world.advance(1_000);
      await manager.acquire({ ...OWNER, ttlMs: 10_000 });
      const use = { ...OWNER, purpose: "Operation" } as const;
      expect(denied(await manager.use(use))).toBe("LEASE_RESUME_REQUIRED");
      expect(denied(await manager.resume(OWNER))).toBe("applied");
      expect(denied(await manager.use(use))).toBe("applied");
    });

    it("tell whether a holder's lease is alive", async () => {
      const world = await open();
      const { manager } = await world.client("me");
      await manager.acquire({ ...OWNER, ttlMs: 1_000 });
      expect(await manager.isValid(KEY, "me")).toBe(true);
      expect(await manager.isValid(KEY, "them")).toBe(false);
      await world.advance(1_000);
      expect(await manager.isValid(KEY, "me")).toBe(false);
    });

    it("repeated with an idempotency key are carried out once", async () => {
      const { manager } = await (await open()).client("me");
      await manager.acquire({ ...OWNER, ttlMs: 10_000 });
      const revoke = { key: KEY, idempotencyKey: "revoke-1" };
      expect(denied(await manager.revoke(revoke))).toBe("applied");
      expect(await manager.revoke(revoke)).toMatchObject({ kind: "applied", decision: { replayed: true } });
      expect(denied(await manager.revoke({ key: KEY }))).toBe("LEASE_ALREADY_REVOKED");
    });
  });
}
