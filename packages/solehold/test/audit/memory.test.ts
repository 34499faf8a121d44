import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeEntry, genesis, MemoryAuditTrail, verifyAudit } from "../../src/audit/index.ts";
import { anyEvent, eventOf } from "./support.ts";

describe("MemoryAuditTrail", () => {
  test("an empty trail has the genesis as its head", async () => {
    const trail = new MemoryAuditTrail({ capacity: 3, trailId: "t" });
    expect(trail.head()).toEqual(genesis("t"));
    expect(await trail.query()).toEqual([]);
    expect(trail.dropped).toBe(0);
  });

  test("keeps the newest entries, says how many it dropped, and the rest still verifies", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 8 }),
        fc.array(anyEvent, { maxLength: 20 }),
        async (capacity, events) => {
          const trail = new MemoryAuditTrail({ capacity, trailId: "t" });
          for (const event of events) trail.append(event);
          const kept = await trail.query({ limit: 100 });
          expect(kept).toHaveLength(Math.min(capacity, events.length));
          expect(trail.dropped).toBe(events.length - kept.length);
          expect(kept.map((entry) => entry.key)).toEqual(
            events.slice(trail.dropped).map((event) => event.key),
          );
          const [first] = kept;
          if (first === undefined) return;
          const startAfter = { sequence: first.sequence - 1, hash: first.previousHash };
          const result = await verifyAudit(kept.map(encodeEntry), { startAfter, anchor: trail.head() });
          expect(result).toEqual({ ok: true, entries: kept.length, head: trail.head() });
        },
      ),
    );
  });

  test("answers by tenant, key, holder, action and sequence, oldest or newest first", async () => {
    const trail = new MemoryAuditTrail({ capacity: 100 });
    const { holder: _, ...anonymous } = eventOf({ key: "a" });
    trail.append(eventOf({ key: "a", action: "grant" }));
    trail.append(eventOf({ key: "b", action: "grant", tenant: "other" }));
    trail.append(eventOf({ key: "a", action: "renew", holder: "worker-2" }));
    trail.append(anonymous);
    const found = async (query: Parameters<typeof trail.query>[0]) =>
      (await trail.query(query)).map((entry) => entry.sequence);
    expect(await found({ key: "a" })).toEqual([1, 3, 4]);
    expect(await found({ key: "a", order: "newest-first", limit: 2 })).toEqual([4, 3]);
    expect(await found({ key: "a", afterSequence: 1 })).toEqual([3, 4]);
    expect(await found({ tenant: "other" })).toEqual([2]);
    expect(await found({ holder: "worker-2" })).toEqual([3]);
    expect(await found({ action: "grant", limit: 2 })).toEqual([1, 2]);
    expect(await found({ afterSequence: 4 })).toEqual([]);
  });

  test("an entry cannot be changed by whoever appended it or asked for it", async () => {
    const trail = new MemoryAuditTrail({ capacity: 10 });
    const detail: Record<string, string> = { note: "before" };
    trail.append(eventOf({ detail }));
    detail.note = "after";
    const [entry] = await trail.query();
    expect(entry?.detail).toEqual({ note: "before" });
    expect(() => Object.assign(entry!, { key: "other" })).toThrow(TypeError);
  });

  test("refuses a malformed event, or repairs it when asked to", async () => {
    const malformed = eventOf({ key: "k".repeat(2000) });
    const strict = new MemoryAuditTrail({ capacity: 10 });
    expect(() => strict.append(malformed)).toThrow(/key must be a string of at most 1024/);
    expect(strict.head().sequence).toBe(0);
    const lenient = new MemoryAuditTrail({ capacity: 10, invalidEvents: "sanitise" });
    lenient.append(malformed);
    expect((await lenient.query())[0]).toMatchObject({ key: "k".repeat(1024), detail: { sanitised: "key" } });
  });

  test("refuses capacities and limits that make no sense, and appending after close", async () => {
    expect(() => new MemoryAuditTrail({ capacity: 0 })).toThrow(
      /capacity must be a whole number from 1 .* got 0/,
    );
    const trail = new MemoryAuditTrail({ capacity: 1 });
    await expect(trail.query({ limit: 0 })).rejects.toThrow(/limit must be .* got 0/);
    await expect(trail.query({ limit: 10_001 })).rejects.toThrow(/limit must be .* to 10000; got 10001/);
    await trail.flush();
    await trail.close();
    expect(() => trail.append(eventOf())).toThrow(/closed/);
  });
});
