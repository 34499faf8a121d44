/** The names of the main entry: adding or removing one is a decision, and is made here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const VALUES = [
  "Lease",
  "LeaseDeniedError",
  "LeaseError",
  "LeaseHeldError",
  "LeaseLostError",
  "LeaseRefusedError",
  "LeaseSet",
  "LeaseTimeoutError",
  "LeaseUnavailableError",
  "Leases",
  "LeasesClosedError",
  "MemoryStore",
  "StoreError",
  "StoreExecutor",
  "connect",
  "formatFence",
  "openStore",
  "parseFence",
];
const TYPES = [
  "AcquireAttempt",
  "AcquireOptions",
  "ConnectOptions",
  "Duration",
  "LeaseChange",
  "LeaseErrorCode",
  "LeaseExecutor",
  "LeaseHandleState",
  "LeaseKey",
  "LeasePolicy",
  "LeaseStore",
  "LeaseView",
  "LossReason",
  "OncePerResult",
  "Purpose",
  "Reason",
  "ReleaseResult",
  "WaitingDetails",
];

const SOURCE = readFileSync(join(import.meta.dirname, "../src/index.ts"), "utf8");

/** `export { type A, b } from`, `export type { C } from`: nothing else may stand in the entry. */
function namesIn(source: string): { readonly values: string[]; readonly types: string[] } {
  const values: string[] = [];
  const types: string[] = [];
  for (const [, isType, list = ""] of source.matchAll(/^export (type )?\{([^}]*)\} from/gm)) {
    for (const name of list.split(",").map((part) => part.trim())) {
      if (name === "") continue;
      if (isType !== undefined || name.startsWith("type ")) types.push(name.replace(/^type /, ""));
      else values.push(name);
    }
  }
  return { values: values.sort(), types: types.sort() };
}

it("exports these names and no others", () => {
  expect(namesIn(SOURCE)).toEqual({ values: VALUES, types: TYPES });
  expect(SOURCE).not.toMatch(/^export (\*|const|function|class)/m);
});
