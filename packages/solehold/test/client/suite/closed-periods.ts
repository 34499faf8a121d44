// A key that is closed for a while: once per period, and a delay after an expiry.
import { describe, expect, it } from "vitest";
import type { OpenWorld } from "./world.ts";

export function describeClosedPeriods(open: OpenWorld): void {
  describe("once per period", () => {
    it("a job that two schedulers start 300 ms apart runs once", async () => {
      const world = await open();
      const [one, two] = await world.clients("one", "two");
      let runs = 0;
      const job = async (): Promise<string> => {
        runs += 1;
        await Promise.resolve();
        return "done";
      };
      const options = { period: "1h", ttl: "10s" } as const;
      expect(await one.runOncePer("report", options, job)).toEqual({ ran: true, result: "done" });
      await world.advance(300);
      expect(await two.runOncePer("report", options, job)).toMatchObject({
        ran: false,
        reason: "LEASE_LOCK_DELAY",
        holder: null,
      });
      expect(runs).toBe(1);
    });

    it("the next period may begin a little early, and not much", async () => {
      const world = await open();
      const [one, two] = await world.clients("one", "two");
      await one.runOncePer("report", { period: "20s" }, () => undefined);
      await world.advance(17_000);
      expect((await two.runOncePer("report", { period: "20s" }, () => undefined)).ran).toBe(false);
      await world.advance(1_500);
      expect((await two.runOncePer("report", { period: "20s" }, () => undefined)).ran).toBe(true);
    });

    it("says who runs it at this moment", async () => {
      const world = await open();
      const [one, two] = await world.clients("one", "two");
      let finish = (): void => undefined;
      const running = one.runOncePer("report", { period: "1h" }, () => {
        return new Promise<void>((resolve) => {
          finish = resolve;
        });
      });
      await world.advance(100);
      expect(await two.runOncePer("report", { period: "1h" }, () => undefined)).toMatchObject({
        ran: false,
        reason: "LEASE_HELD_BY_OTHER",
        holder: "one",
      });
      finish();
      expect(await running).toMatchObject({ ran: true });
    });

    it("a job that throws has had its turn, and its error is the caller's", async () => {
      const [one, two] = await (await open()).clients("one", "two");
      const failure = one.runOncePer("report", { period: "1h" }, () => {
        throw new Error("no paper");
      });
      await expect(failure).rejects.toThrow("no paper");
      expect((await two.runOncePer("report", { period: "1h" }, () => undefined)).ran).toBe(false);
    });

    it("a period must be a duration", async () => {
      const leases = await (await open()).client("me");
      const wrong = { period: 0 };
      await expect(leases.runOncePer("report", wrong, () => undefined)).rejects.toThrow(/^period must be/);
      const unknown = { period: "1h", holdAtLeast: "1s" } as const;
      await expect(leases.runOncePer("report", unknown, () => undefined)).rejects.toThrow(
        /no option 'holdAtLeast'/,
      );
    });
  });

  describe("a minimum hold", () => {
    it("keeps waiters out until it is over, and is shown to readers", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const lease = await mine.acquire("job", { holdAtLeast: "20s" });
      await lease.release();
      const seen = await theirs.inspect("job");
      expect((seen?.minHoldUntilMs ?? 0) - (seen?.grantedAtMs ?? 0)).toBe(20_000);
      const waiting = theirs.acquire("job", { wait: "60s" });
      let has = false;
      void waiting.then(() => {
        has = true;
      });
      await world.advance(19_000);
      expect(has).toBe(false);
      await world.settled(waiting);
    });

    it("is opened by an operator's revoke", async () => {
      const [mine, theirs] = await (await open()).clients("me", "them");
      await (await mine.acquire("job", { holdAtLeast: "1h" })).release();
      expect(await theirs.tryAcquire("job")).toMatchObject({ ok: false, reason: "LEASE_LOCK_DELAY" });
      await theirs.revoke("job");
      expect((await theirs.tryAcquire("job")).ok).toBe(true);
    });
  });

  describe("a lock-delay", () => {
    it("keeps others out after an expiry, and not after a release", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      const options = { ttl: "5s", lockDelay: "10s", autoRenew: false } as const;
      await (await mine.acquire("job", options)).release();
      await mine.acquire("job", options);
      await world.advance(5_100);
      expect(await theirs.tryAcquire("job")).toMatchObject({ ok: false, reason: "LEASE_LOCK_DELAY" });
      await world.advance(10_100);
      expect((await theirs.tryAcquire("job")).ok).toBe(true);
    });
  });
}
