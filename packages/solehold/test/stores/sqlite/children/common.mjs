// What the child processes share: the built store, records, and line by line talk with the test.
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { openEmbeddedStore } from "solehold/embedded";

export { openEmbeddedStore };

let written = 0;

/** At once, even if nobody reads for a while: what was queued would die with the process. */
export function say(line) {
  for (;;) {
    try {
      writeSync(1, `${line}\n`);
      return;
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      // The test is busy, and has not read what is in the pipe.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

export function keyNamed(name) {
  return { tenant: "default", name };
}

export function recordNamed(name, changes = {}) {
  written += 1;
  return {
    key: keyNamed(name),
    holder: `process-${process.pid}`,
    purpose: "Operation",
    tokenHash: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
    term: 0n,
    generation: 1n,
    ttlMs: 30_000,
    grantedAtMs: 1_750_000_000_000,
    renewedAtMs: 1_750_000_000_000,
    expiresAtMs: 1_750_000_030_000,
    endedAtMs: null,
    state: "held",
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    minHoldUntilMs: null,
    lockDelayMs: 0,
    handoff: null,
    reservation: null,
    ticket: "",
    nonce: `${process.pid}-${written}`,
    idempotency: null,
    note: "",
    metadata: {},
    ...changes,
  };
}

/** One line of the test at a time. */
export function commands() {
  return createInterface({ input: process.stdin });
}
