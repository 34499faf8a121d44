// The real HTTP app, stream, wait lines and SDK in the simulated world; larger runs are made by `solehold sim`.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { serverGateway } from "@solehold/server/sim";
import {
  plantedBug,
  type RegressionCase,
  replay,
  report,
  runFull,
  SERVER_BUGS,
  searchBug,
} from "@solehold/simulator";
import { describe, expect, it } from "vitest";

const SEEDS = process.env.SOLEHOLD_EFFORT === "full" ? 40 : 20;
const TWICE_EVERY = 10;
const FOLDER = join(import.meta.dirname, "../../../../regressions");
const CASES = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".json"))
  .map((name): [string, RegressionCase] => [name, JSON.parse(readFileSync(join(FOLDER, name), "utf8"))])
  .filter(([, kept]) => kept.entry === "server");

const gateway = serverGateway();

describe("clients that go through servers", () => {
  it("find every promise kept, in runs that can be repeated event for event", async () => {
    const reached = new Set<string>();
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const result = await runFull({ seed, gateway, entry: "server" });
      if (result.violation !== null) expect(report(result)).toBe("");
      for (const situation of result.sometimes.keys()) reached.add(situation);
      if (seed % TWICE_EVERY > 0) continue;
      const again = await runFull({ seed, gateway, entry: "server" });
      expect([again.hash, again.events]).toEqual([result.hash, result.events]);
    }
    expect([...reached]).toEqual(
      expect.arrayContaining([
        "a waiter in a server's queue was granted after waiting",
        "a server died while clients waited",
        "two servers decided about one key",
        "a waiter at the head of the queue died or gave up",
      ]),
    );
  });

  it("go the same way when a seed does not say otherwise: some through servers, some not", async () => {
    const entries = new Set<string>();
    for (let seed = 1; seed <= 8; seed += 1) {
      entries.add((await runFull({ seed, gateway, faults: [] })).config.entry);
    }
    expect([...entries].sort()).toEqual(["library", "server"]);
  });

  it("leave nothing of one run to the next, also where a broken promise stopped it", async () => {
    const used = serverGateway();
    for (const name of ["sdk-counts-from-answer", "sdk-timeout-reported-as-held"])
      expect((await searchBug(plantedBug(name), used)).oracle).not.toBeNull();
    const bug = plantedBug("sdk-503-reported-as-not-done");
    expect(await searchBug(bug, used)).toEqual(await searchBug(bug, serverGateway()));
  });
});

describe("planted bugs on the way to a server", () => {
  it.each(SERVER_BUGS.map((bug) => [bug.name, bug.mistake, bug] as const))(
    "are found: %s (%s)",
    async (_name, _mistake, bug) => {
      const { oracle, seedsTried } = await searchBug(bug, gateway);
      expect(bug.caughtBy).toContain(oracle);
      expect(seedsTried).toBeLessThanOrEqual(bug.withinSeeds);
    },
    120_000,
  );
});

describe("kept failures through servers", () => {
  it.each(CASES)("%s fails with its bug and not without", async (_name, kept) => {
    if (kept.bug !== null) {
      const bug = plantedBug(kept.bug);
      const { violation } = await replay(kept, "with", gateway);
      // The code may have moved on since: then the bug shows a few seeds later.
      expect(bug.caughtBy).toContain(violation?.oracle ?? (await searchBug(bug, gateway, kept.seed)).oracle);
    }
    expect((await replay(kept, "without", gateway)).violation).toBeNull();
  });
});
