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
      const { executor } = await (await open()).client("me");
      const first = await executor.execute({ op: "acquire", ...OWNER, ttlMs: 10_000 });
      const again = await executor.execute({ op: "acquire", ...OWNER, ttlMs: 10_000 });
      for (const outcome of [first, again]) {
        expect(outcome).toMatchObject({ kind: "applied", token: "own-token" });
      }
      expect(generationOf(again)).toBe(generationOf(first));
      const other = await executor.execute({ op: "acquire", ...OWNER, token: "another", ttlMs: 10_000 });
      expect(denied(other)).toBe("LEASE_HELD_BY_SELF");
    });

    it("use allows the granted purpose, and only with the token, while it lasts", async () => {
      const world = await open();
      const { executor } = await world.client("me");
      await executor.execute({ op: "acquire", ...OWNER, ttlMs: 10_000, purpose: "StateWrite" });
      const use = async (change: object = {}): Promise<string> =>
        denied(await executor.execute({ op: "use", ...OWNER, purpose: "StateWrite", ...change }));
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
      const { executor } = await world.client("me");
      await executor.execute({ op: "acquire", key: KEY, holder: "dead", token: "old", ttlMs: 1_000 });
      await world.advance(1_000);
      await executor.execute({ op: "acquire", ...OWNER, ttlMs: 10_000 });
      const use = { ...OWNER, purpose: "Operation" } as const;
      expect(denied(await executor.execute({ ...use, op: "use" }))).toBe("LEASE_RESUME_REQUIRED");
      expect(denied(await executor.execute({ ...OWNER, op: "resume" }))).toBe("applied");
      expect(denied(await executor.execute({ ...use, op: "use" }))).toBe("applied");
    });

    it("tell whether a holder's lease is alive", async () => {
      const world = await open();
      const { executor } = await world.client("me");
      await executor.execute({ op: "acquire", ...OWNER, ttlMs: 1_000 });
      expect(await executor.read(KEY)).toMatchObject({ live: true, holder: "me" });
      await world.advance(1_000);
      expect(await executor.read(KEY)).toMatchObject({ live: false, holder: "me" });
    });

    it("repeated with an idempotency key are carried out once", async () => {
      const { executor } = await (await open()).client("me");
      await executor.execute({ op: "acquire", ...OWNER, ttlMs: 10_000 });
      const revoke = { key: KEY, idempotencyKey: "revoke-1" };
      expect(denied(await executor.execute({ ...revoke, op: "revoke" }))).toBe("applied");
      expect(await executor.execute({ ...revoke, op: "revoke" })).toMatchObject({
        kind: "applied",
        decision: { replayed: true },
      });
      expect(denied(await executor.execute({ op: "revoke", key: KEY }))).toBe("LEASE_ALREADY_REVOKED");
    });
  });
}
