/** In which order a driver on a pool of its own sends what follows a statement, and tells of its reply. */
import { describe, expect, it } from "vitest";
import { realEnv } from "../../../src/env/index.ts";
import type { PgPool, PgPoolConnection, PgSubmittable } from "../../../src/stores/postgres/clients.ts";
import type { FollowUp } from "../../../src/stores/postgres/driver.ts";
import { PgDriver } from "../../../src/stores/postgres/pg-driver.ts";

/** A server that answers every statement in its next turn, and notes when it was sent. */
function driverThatNotes(): { driver: PgDriver; notes: string[] } {
  const notes: string[] = [];
  const connection = {
    query: (query: PgSubmittable & { readonly name: string }) => {
      notes.push(`sent ${query.name}`);
      setImmediate(() => query.handleReadyForQuery());
    },
    on: () => undefined,
    removeListener: () => undefined,
    release: () => undefined,
  } as unknown as PgPoolConnection;
  const pool = {
    connect: async () => connection,
    on: () => undefined,
    removeListener: () => undefined,
  } as unknown as PgPool;
  const driver = new PgDriver({
    ...{ pool, ownership: "own", env: realEnv, timeoutMs: 1_000, place: "here", prepare: "named" },
    connectSession: () => Promise.reject(new Error("no session here")),
    end: async () => void notes.push("ended"),
  });
  return { driver, notes };
}

function followUp(pace: FollowUp["pace"], notes: string[]): FollowUp {
  return {
    message: () => ({ statement: { name: "news", text: "" }, values: [] }),
    pace,
    settled: () => void notes.push("settled"),
  };
}

describe("what follows a statement", () => {
  it.each([
    ["now", ["sent write", "sent news", "told"]],
    ["soon", ["sent write", "told", "sent news"]],
  ] as const)("%s is sent in this order", async (pace, order) => {
    const { driver, notes } = driverThatNotes();
    const told = driver
      .query({ name: "write", text: "" }, [], () => followUp(pace, notes))
      .then(() => notes.push("told"));
    await told;
    await new Promise((resolve) => setImmediate(resolve));
    expect(notes.slice(0, 3)).toEqual(order);
  });

  it("soon is still sent, and waited for, when the store is closed by whoever was told", async () => {
    const { driver, notes } = driverThatNotes();
    await driver.query({ name: "write", text: "" }, [], () => followUp("soon", notes));
    await driver.close();
    expect(notes).toEqual(["sent write", "sent news", "settled", "ended"]);
  });
});
