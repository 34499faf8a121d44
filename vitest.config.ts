import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Tests import the packages by name and get their sources, so nothing here can run a stale build.
// Tests that start real processes use the build, which the test command makes first.
const conditions = ["solehold-source"];

/** They begin first, so that none of them runs alone at the end: without a cache vitest goes by the size of files. */
const LONG =
  /(planted-bugs|explore|campaign|lease-dst|through-servers|model|takeover|packed|processes|[/]faults|s3-contract|replicas|failover|live|act|playground|mcp|code|server-commands|no-crash|kill|first-contact|integrity|elect-and-watch|run[/]run|suite|[/]conformance|examples)\.test\.ts$/;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  ssr: { resolve: { conditions } },
  test: {
    include: [
      "packages/*/test/**/*.test.ts",
      "bench/test/**/*.test.ts",
      "docs/test/**/*.test.ts",
      "clients/*/test/**/*.test.ts",
    ],
    // What a test waits for comes in milliseconds, or much later where all cores are busy. What hangs, hangs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    pool: "forks",
    // Each file still gets its own instances of our modules. What files share is the process and what Node loaded from
    // node_modules: starting a process for each of them cost much of the whole run.
    isolate: false,
    // On two cores the default is one file at a time, although most of a file's time is waiting: for servers, for
    // processes to start, for leases to end.
    maxWorkers: 5,
    sequence: { sequencer: LongFirst },
    reporters: ["default"],
  },
});
