/** The memory store passes the kit, and the kit is not fooled by memory stores with a planted fault. */
import { describe, expect, it } from "vitest";
import {
  describeLeases,
  describeStore,
  leaseConformanceCases,
  storeConformanceCases,
} from "../../../src/conformance/index.ts";
import { ShiftedEnv } from "../../../src/conformance/shifted-env.ts";
import { realEnv } from "../../../src/env/index.ts";
import { MemoryStore } from "../../../src/store/index.ts";
import { FAULTS, LEASE_FAULTS } from "./faults.ts";
import { ListingLate, withoutListing } from "./late-listings.ts";

describeStore("memory", { open: async () => new MemoryStore() }, { describe, it });
describeStore("memory without listings", { open: async () => withoutListing() }, { describe, it });
describeStore(
  "memory with listings that lag behind",
  { open: async () => new ListingLate() },
  { describe, it },
);
const env = new ShiftedEnv(realEnv, 0);
describeLeases(
  "memory",
  { open: async () => new MemoryStore({ env }), jumpClock: (byMs) => env.step(byMs) },
  { describe, it },
);

describe("the kit", () => {
  for (const { fault, breaks, open } of FAULTS) {
    it(`catches a store that ${fault}`, async () => {
      const failed: string[] = [];
      for (const { title, run } of storeConformanceCases({ open, patienceMs: 200 })) {
        await run().catch(() => failed.push(title));
      }
      expect(failed).toContain(breaks);
    });
  }

  for (const { fault, breaks, ...subject } of LEASE_FAULTS) {
    it(`sees in leases that a store ${fault}: ${breaks}`, async () => {
      const cases = leaseConformanceCases({ ...subject, patienceMs: 1_500 });
      await expect(cases.find(({ title }) => title === breaks)!.run()).rejects.toThrow();
    });
  }

  it("names the seed of a history that went wrong, and repeats it", async () => {
    const { open } = FAULTS.find(({ fault }) => fault === "writes without comparing")!;
    const differential = (seed?: number) =>
      storeConformanceCases({ open, ...(seed === undefined ? {} : { seed }) })
        .find(({ title }) => title.startsWith("random histories"))!
        .run();
    const message = await differential().catch((error: Error) => error.message);
    const seed = Number(/^seed (\d+): /.exec(String(message))?.[1]);
    await expect(differential(seed)).rejects.toThrow(`seed ${seed}: `);
  });
});
