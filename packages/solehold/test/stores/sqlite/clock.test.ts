/** The store's clock over restarts, reboots, wrong wall clocks, and what that does to leases. */
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualEnv } from "../../../src/env/index.ts";
import { openWithSeams } from "../../../src/stores/sqlite/open.ts";
import type { EmbeddedStore } from "../../../src/stores/sqlite/store.ts";
import { isSameBoot, namespaceShiftMs, readBoot } from "../../../src/support/boot.ts";
import { afterThisTest, found, putApplied, recordNamed, temporaryFolder } from "./fixtures.ts";

const START_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
const TTL_MS = 30_000;

/** A machine that can be rebooted, with a real folder. */
class Machine {
  readonly folder: string;
  env: ManualEnv;
  #boots = 1;
  readonly #open = new Set<EmbeddedStore>();

  constructor(folder: string) {
    this.folder = folder;
    this.env = new ManualEnv({ monotonicMs: 5_000.25, wallMs: START_MS });
    afterThisTest(() => this.#closeAll());
  }

  async open(): Promise<EmbeddedStore> {
    const id = `id:boot-${this.#boots}`;
    const { folder, env } = this;
    const store = await openWithSeams({ folder, env }, { readBoot: () => ({ id, aheadMs: 0 }) });
    this.#open.add(store);
    return store;
  }

  async close(store: EmbeddedStore): Promise<void> {
    this.#open.delete(store);
    await store.close();
  }

  /** The power fails, so nobody says goodbye; later it starts, with any monotonic and wall clock. */
  async crashAndBoot(wallMs: number, monotonicMs = 700.5): Promise<void> {
    // The database has to let go of its files, but must not write: the clock is taken away first.
    const frozen = this.env;
    frozen.monotonicMs = () => 0;
    await this.#closeAll();
    this.#boots += 1;
    this.env = new ManualEnv({ monotonicMs, wallMs });
  }

  async #closeAll(): Promise<void> {
    for (const store of this.#open) await store.close();
    this.#open.clear();
  }
}

async function lease(store: EmbeddedStore, name: string, expected: string | null = null): Promise<string> {
  const nowMs = store.now();
  const record = recordNamed(name, {
    ttlMs: TTL_MS,
    grantedAtMs: nowMs,
    renewedAtMs: nowMs,
    expiresAtMs: nowMs + TTL_MS,
    breakAtMs: nowMs + 20_000,
    handoff: { successor: "next", deadlineMs: nowMs + 25_000 },
  });
  return await putApplied(store, record, expected);
}

function machine(): Machine {
  return new Machine(join(temporaryFolder(), "store"));
}

describe("the clock of one boot", () => {
  it("begins at the wall clock and then follows the monotonic clock alone", async () => {
    const box = machine();
    const store = await box.open();
    expect(store.now()).toBe(START_MS);
    await box.env.advance(1_234);
    box.env.stepWall(-HOUR_MS);
    expect(store.now()).toBe(START_MS + 1_234);
    box.env.stepWall(5 * HOUR_MS);
    expect(store.now()).toBe(START_MS + 1_234);
    box.env.suspend(HOUR_MS);
    expect(store.now()).toBe(START_MS + 1_234);
  });

  it("is the same for a process that restarts or joins, whatever the wall clock says then", async () => {
    const box = machine();
    const first = await box.open();
    await lease(first, "job");
    await box.env.advance(10_000);
    box.env.stepWall(-HOUR_MS);
    const second = await box.open();
    expect(second.now()).toBe(first.now());
    const before = (await found(first, "job")).record;
    await box.close(first);
    await box.close(second);
    box.env.stepWall(3 * HOUR_MS);
    await box.env.advance(5);
    const third = await box.open();
    expect(third.now()).toBe(START_MS + 10_005);
    expect((await found(third, "job")).record).toEqual(before);
  });

  it("refuses a machine whose clock is behind the store's mark in the same boot", async () => {
    const box = machine();
    const store = await box.open();
    await box.env.advance(60_000);
    await lease(store, "job");
    await box.close(store);
    box.env = new ManualEnv({ monotonicMs: 5_001, wallMs: START_MS });
    await expect(box.open()).rejects.toMatchObject({
      kind: "config",
      message: expect.stringMatching(/clock is 59999 ms behind.*reboot/),
    });
  });

  it("reads through the shift of a time namespace", async () => {
    const box = machine();
    const store = await box.open();
    const shifted = new ManualEnv({ monotonicMs: box.env.monotonicMs() + HOUR_MS, wallMs: 0 });
    const inside = await openWithSeams(
      { folder: box.folder, env: shifted },
      { readBoot: () => ({ id: "id:boot-1", aheadMs: HOUR_MS }) },
    );
    afterThisTest(() => inside.close());
    expect(inside.now()).toBe(store.now());
    expect(namespaceShiftMs("monotonic           86400         5000000\nboottime 7 0\n")).toBe(86_400_005);
    expect(namespaceShiftMs("monotonic -10 0\n")).toBe(-10_000);
    expect(namespaceShiftMs("")).toBe(0);
  });
});

describe("a reboot", () => {
  const wallClocks = [
    ["an hour ahead", HOUR_MS],
    ["an hour behind", -HOUR_MS],
    ["exactly where the store's clock stopped", 0],
    ["at the beginning of time", -START_MS],
  ] as const;

  for (const [what, step] of wallClocks) {
    it(`with the wall clock ${what} takes no time from a live lease and never goes back`, async () => {
      const box = machine();
      const store = await box.open();
      await lease(store, "job");
      await box.env.advance(10_000);
      const version = await lease(store, "mark");
      const markMs = store.now();
      await box.env.advance(4_000);
      const lastMs = store.now();
      await box.crashAndBoot(markMs + step);
      const after = await box.open();
      expect(after.now()).toBe(Math.max(markMs, markMs + step));
      const { record } = await found(after, "job");
      const leftMs = record.expiresAtMs - after.now();
      expect(leftMs).toBe(TTL_MS - 10_000);
      expect(leftMs).toBeGreaterThanOrEqual(START_MS + TTL_MS - lastMs);
      expect(record.breakAtMs! - after.now()).toBe(10_000);
      expect(record.handoff!.deadlineMs - after.now()).toBe(15_000);
      expect(record.renewedAtMs).toBe(START_MS);
      // Written by the new epoch it is its own; the other one still is of the old epoch.
      await lease(after, "mark", version);
      expect((await found(after, "mark")).record.expiresAtMs).toBe(after.now() + TTL_MS);
    });
  }

  it("leaves a lease that was dead at the mark dead, and unchanged", async () => {
    const box = machine();
    const store = await box.open();
    await lease(store, "dead");
    await box.env.advance(TTL_MS);
    await lease(store, "mark");
    const before = (await found(store, "dead")).record;
    await box.crashAndBoot(START_MS + HOUR_MS);
    const after = await box.open();
    expect((await found(after, "dead")).record).toEqual(before);
    expect((await found(after, "dead")).record.expiresAtMs).toBeLessThanOrEqual(after.now());
  });

  it("translates over several boots, and cuts nothing short at any of them", async () => {
    const box = machine();
    await lease(await box.open(), "job");
    for (let boot = 0; boot < 5; boot += 1) {
      await box.crashAndBoot(START_MS + boot * 7_000);
      const store = await box.open();
      expect((await found(store, "job")).record.expiresAtMs - store.now()).toBe(TTL_MS);
    }
  });

  it("is one new epoch for all processes of the boot", async () => {
    const box = machine();
    await lease(await box.open(), "job");
    await box.crashAndBoot(START_MS + HOUR_MS);
    const first = await box.open();
    await box.env.advance(2_000);
    const second = await box.open();
    expect(second.now()).toBe(first.now());
    expect((await found(second, "job")).record).toEqual((await found(first, "job")).record);
  });

  it("never repeats a time that a store showed before it was closed", async () => {
    const box = machine();
    const store = await box.open();
    await box.env.advance(50_000);
    const abortedMs = store.now();
    await box.close(store);
    await box.crashAndBoot(START_MS - HOUR_MS);
    expect((await box.open()).now()).toBe(abortedMs);
  });

  it("cannot move an instant beyond the largest number", async () => {
    const box = machine();
    const store = await box.open();
    await putApplied(store, recordNamed("for-ever", { expiresAtMs: Number.MAX_SAFE_INTEGER }));
    await box.crashAndBoot(START_MS + HOUR_MS);
    const after = await box.open();
    expect((await found(after, "for-ever")).record.expiresAtMs).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("property: whatever happens, time never goes back, and a lease keeps what its holder believes, plus at most a ttl", async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("advance" as const), ms: fc.integer({ min: 0, max: 20_000 }) }),
      fc.record({ do: fc.constant("renew" as const), ms: fc.constant(0) }),
      fc.record({ do: fc.constant("restart" as const), ms: fc.integer({ min: -HOUR_MS, max: HOUR_MS }) }),
      fc.record({ do: fc.constant("crash" as const), ms: fc.integer({ min: -HOUR_MS, max: HOUR_MS }) }),
    );
    const root = temporaryFolder();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        run += 1;
        const box = new Machine(join(root, `store-${run}`));
        let store = await box.open();
        let version: string | null = null;
        let believedMs = 0;
        let renewedMs = 0;
        for (const { do: what, ms } of steps) {
          const beforeMs = store.now();
          if (what === "advance") {
            await box.env.advance(ms);
            believedMs = Math.max(0, believedMs - ms);
          }
          if (what === "renew") {
            version = await lease(store, "job", version);
            believedMs = TTL_MS;
            renewedMs = store.now();
          }
          if (what === "restart") {
            await box.close(store);
            box.env.stepWall(ms);
            store = await box.open();
            expect(store.now()).toBe(beforeMs);
          }
          if (what === "crash") {
            await box.crashAndBoot(box.env.wallMs() + ms);
            store = await box.open();
            expect(store.now()).toBeGreaterThanOrEqual(renewedMs);
          }
          if (version === null) continue;
          const leftMs = (await found(store, "job")).record.expiresAtMs - store.now();
          if (believedMs > 0) expect(leftMs).toBeGreaterThanOrEqual(believedMs);
          expect(leftMs).toBeLessThanOrEqual(TTL_MS);
        }
        await box.close(store);
      }),
      { numRuns: 15 },
    );
    // Dozens of openings, each with a thread of its own: slow on a machine that is busy otherwise.
  });
});

describe("the name of a boot", () => {
  it("is the system's own where it has one", () => {
    const env = new ManualEnv();
    expect(readBoot(env).id).toBe(readBoot(env).id);
    if (process.platform === "linux") expect(readBoot(env).id).toMatch(/^id:[0-9a-f-]{36}$/);
  });

  it("is elsewhere the moment of the boot, give or take a minute", () => {
    expect(isSameBoot("moment:1700000000000", "moment:1700000060000")).toBe(true);
    expect(isSameBoot("moment:1700000000000", "moment:1700000060001")).toBe(false);
    expect(isSameBoot("moment:1700000000000", "id:1700000000000")).toBe(false);
    expect(isSameBoot("id:a", "id:a")).toBe(true);
    expect(isSameBoot("id:a", "id:b")).toBe(false);
  });
});
