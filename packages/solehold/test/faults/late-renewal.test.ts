/**
 * After a restart that may have lost writes, a lease that is over is shown with a raised generation, so that the next
 * grant is above everything that was lost. A renewal from before the restart that arrives only then must not bring the
 * lease back under its old generation: others would see a fence go back.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { delay, realEnv } from "../../src/env/index.ts";
import {
  type ConditionalWrite,
  type LeaseStore,
  StoreError,
  type WriteResult,
} from "../../src/store/index.ts";
import { readOne, StoreBench } from "../../src/testing/bench.ts";
import { claimCreated } from "../../src/testing/claims.ts";
import type { Engine } from "../engines/index.ts";
import { FAULT_ENGINES } from "./engines.ts";

const LOSING = FAULT_ENGINES.filter(({ title }) => title === "Redis" || title === "NATS");
const TEN_MINUTES_MS = 600_000;

describe.each(LOSING)("a renewal that arrives after a restart of $title", ({ start, open, kill }) => {
  let server: Engine;
  let store: LeaseStore;
  let bench: StoreBench;

  beforeAll(async () => {
    server = await start();
    store = await open(server, {});
    bench = new StoreBench({ open: async () => store });
  });

  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  it("continues a lease that is alive, and does not revive one that is over", async () => {
    const nowMs = Math.floor(realEnv.wallMs());
    const alive = bench.record(bench.key("alive"), { expiresAtMs: nowMs + TEN_MINUTES_MS });
    const over = bench.record(bench.key("over"), { expiresAtMs: nowMs - TEN_MINUTES_MS });
    const versions = [await claimCreated(store, alive), await claimCreated(store, over)] as const;
    await kill(server);
    const expiresAtMs = nowMs + 2 * TEN_MINUTES_MS;
    const renewals = [alive, over].map((record, index) => {
      const next = bench.record(record.key, { expiresAtMs });
      return arriving({ key: record.key, expected: versions[index] ?? null, next });
    });
    await server.restart();
    const [ofAlive, ofOver] = await Promise.all(renewals);
    expect(ofAlive?.kind).toBe("applied");
    expect(ofOver).toEqual({ kind: "conflict", current: await readOne(store, over.key) });
    const shown = await readOne(store, over.key);
    expect(shown.kind === "found" && shown.record.generation > over.generation).toBe(true);
  });

  /** Until the client knows that its connection is gone it fails; then the write waits for the next one. */
  async function arriving(write: ConditionalWrite): Promise<WriteResult | undefined> {
    for (;;) {
      try {
        return (await store.apply([write])).results[0];
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        await delay(realEnv, 5);
      }
    }
  }
});
