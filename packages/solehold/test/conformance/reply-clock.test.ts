/** The kit's leases on a store whose time comes only in replies, from a clock that can be set. */
import { describe, it } from "vitest";
import { describeLeases } from "../../src/conformance/index.ts";
import { realEnv } from "../../src/env/index.ts";
import { ClockedStore } from "../executor/clocked-store.ts";

let store: ClockedStore;

describeLeases(
  "memory with its time in replies only",
  {
    open: async () => {
      store = new ClockedStore(realEnv);
      return store;
    },
    openSecond: async () => store,
    jumpClock: (byMs) => {
      store.offsetMs += byMs;
    },
  },
  { describe, it },
);
