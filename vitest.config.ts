import { defineConfig } from "vitest/config";

// Tests import the packages by name and get their sources, so nothing here can run a stale build.
// Tests that start real processes use the build, which the test command makes first.
const conditions = ["solehold-source"];

export default defineConfig({
  ssr: { resolve: { conditions } },
  test: {
    include: [
      "packages/*/test/**/*.test.ts",
      "bench/test/**/*.test.ts",
      "docs/test/**/*.test.ts",
      "clients/*/test/**/*.test.ts",
    ],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    // On two cores the default is one file at a time, although most of a file's time is waiting for servers.
    maxWorkers: 2,
    reporters: ["default"],
  },
});
