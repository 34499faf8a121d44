import { defineConfig } from "vitest/config";

// Tests import the packages by name and get their sources, so nothing here can run a stale build.
// Tests that start real processes use the build, which the test command makes first.
const conditions = ["solehold-source", "node", "import", "module", "default"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: "forks",
    reporters: ["default"],
  },
});
