// What operators and onlookers do: look, list, watch, revoke, break.
import { describe, expect, it } from "vitest";
import { LeaseDeniedError } from "../../../src/client/errors.ts";
import type { Leases } from "../../../src/client/leases.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
import type { OpenWorld } from "./world.ts";

async function namesOf(leases: Leases, filter: Parameters<Leases["list"]>[0]): Promise<string[]> {
  const found: string[] = [];
  for await (const lease of leases.list(filter)) found.push(lease.key.name);
  return found;
}

export function describeOperating(open: OpenWorld): void {
  describe("operators", () => {
    it("revoking what is not there is denied, not ignored", async () => {
      const leases = await (await open()).client("me");
      const failure = leases.revoke("nothing");
      await expect(failure).rejects.toBeInstanceOf(LeaseDeniedError);
      await expect(failure).rejects.toMatchObject({ reason: "LEASE_NOT_FOUND", code: "LEASE_DENIED" });
    });

    it("revoking twice is denied the second time", async () => {
      const leases = await (await open()).client("me");
      await leases.acquire("job");
      await leases.revoke("job");
      expect(await leases.inspect("job")).toMatchObject({ state: "revoked", live: false });
      await expect(leases.revoke("job")).rejects.toMatchObject({ reason: "LEASE_ALREADY_REVOKED" });
    });

    it("a revoked lease cannot be had before its old holder can no longer believe in it", async () => {
      const world = await open();
      const [mine, theirs] = await world.clients("me", "them");
      await mine.acquire("job", { ttl: "10s" });
      await theirs.revoke("job");
      expect(await theirs.tryAcquire("job")).toMatchObject({ ok: false, reason: "LEASE_REVOKED" });
      await world.advance(10_000);
      expect((await theirs.tryAcquire("job")).ok).toBe(true);
    });

    it("revoking or breaking a grant by its fence leaves a newer one alone", async () => {
      const [mine, theirs] = await (await open()).clients("me", "them");
      const first = await mine.acquire("job");
      await first.release();
      const second = await theirs.acquire("job");
      const stale = { reason: "LEASE_GENERATION_STALE" };
      await expect(mine.revoke("job", { fence: first.fence })).rejects.toMatchObject(stale);
      await expect(mine.break("job", { period: 0, fence: first.fence })).rejects.toMatchObject(stale);
      expect(await second.renew()).toBe(true);
      await mine.revoke("job", { fence: second.fence });
      expect(await mine.inspect("job")).toMatchObject({ state: "revoked" });
    });

    it("a break shows when the lease ends, and refuses a period that is none", async () => {
      const world = await open();
      const leases = await world.client("me");
      const lease = await leases.acquire("job", { ttl: "60s", autoRenew: false });
      await leases.break("job", { period: "70s" });
      const seen = await leases.inspect("job");
      expect((seen?.breakAtMs ?? 0) - (seen?.grantedAtMs ?? 0)).toBe(70_000);
      await world.advance(20_000);
      await lease.renew();
      expect(lease.expiresAtMs).toBe(seen?.breakAtMs);
      await expect(leases.break("job", { period: -1 })).rejects.toThrow(/^period must be/);
      await expect(leases.break("nothing", { period: 0 })).rejects.toMatchObject({
        reason: "LEASE_NOT_FOUND",
      });
    });

    it("list by prefix and by holder, in the order of names", async () => {
      const [mine, theirs] = await (await open()).clients("me", "them");
      for (const name of ["a/2", "a/1", "b", "a/3"]) await mine.acquire(name);
      await theirs.acquire("a/them");
      expect(await namesOf(mine, { prefix: "a/" })).toEqual(["a/1", "a/2", "a/3", "a/them"]);
      expect(await namesOf(mine, { prefix: "a/", holder: "them" })).toEqual(["a/them"]);
      expect(await namesOf(mine, {})).toHaveLength(5);
      expect(await namesOf(mine, { prefix: "c" })).toEqual([]);
      await mine.revoke("b");
      expect(await namesOf(mine, { state: "revoked" })).toEqual(["b"]);
      expect(await namesOf(mine, { prefix: "a/", state: "held", holder: "me" })).toHaveLength(3);
    });

    it("list more than one page without loss or repetition", async () => {
      const leases = await (await open()).client("me");
      const names = Array.from({ length: 520 }, (_, index) => `n/${String(index).padStart(4, "0")}`);
      await Promise.all(names.map((name) => leases.acquire(name, { autoRenew: false })));
      expect(await namesOf(leases, { prefix: "n/" })).toEqual(names);
    });

    it("list a page at a time by state, as a table does", async () => {
      const { executor, ...leases } = await (await open()).client("me").then((client) => ({
        executor: client.executor,
        acquire: client.acquire.bind(client),
      }));
      for (const name of ["a", "b", "c", "d"]) {
        const lease = await leases.acquire(name);
        if (name === "b") await lease.release();
      }
      const query = { tenant: "default", prefix: "", state: "held", limit: 2 } as const;
      const first = await executor.list(query);
      expect(first.leases.map(({ key }) => key.name)).toEqual(["a", "c"]);
      const second = await executor.list({ ...query, after: first.next ?? "" });
      expect(second.leases.map(({ key }) => key.name)).toEqual(["d"]);
      expect(second.corrupt).toEqual([]);
    });

    it("see nothing of another tenant under the same names", async () => {
      const world = await open();
      const leases = await world.client("me");
      await leases.acquire("job");
      expect(await leases.executor.read({ tenant: "another", name: "job" })).toBeNull();
      const page = await leases.executor.list({ tenant: "another", prefix: "", limit: 10 });
      expect(page.leases).toEqual([]);
    });
  });

  describe("watching", () => {
    it("tells of every change in its scope and of no other, until it is closed", async () => {
      const world = await open();
      const [mine, watcher] = await world.clients("me", "watcher");
      const events: StoreEvent[] = [];
      const watch = await watcher.executor.watch({ tenant: "default", prefix: "a/" }, (event) =>
        events.push(event),
      );
      expect(watch).not.toBeNull();
      const lease = await mine.acquire("a/job", { ttl: "10s" });
      await mine.acquire("b/job");
      await lease.renew();
      await world.advance(100);
      await lease.release();
      await world.advance(100);
      const changes = events.flatMap((event) => (event.kind === "changed" ? [event] : []));
      expect(new Set(changes.map(({ key }) => key.name))).toEqual(new Set(["a/job"]));
      expect(changes.at(-1)?.stored).toMatchObject({ record: { holder: "me", state: "released" } });
      await watch?.close();
      const before = events.length;
      await mine.acquire("a/other");
      await world.advance(100);
      expect(events).toHaveLength(before);
    });
  });
}
