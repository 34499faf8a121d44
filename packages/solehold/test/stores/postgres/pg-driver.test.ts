/** In which order a driver on a pool of its own sends what follows a statement, and tells of its reply. */
import { describe, expect, it } from "vitest";
import { realEnv } from "../../../src/env/index.ts";
import type { PgPool, PgPoolConnection, PgSubmittable } from "../../../src/stores/postgres/clients.ts";
import type { FollowUp } from "../../../src/stores/postgres/driver.ts";
import { PgDriver } from "../../../src/stores/postgres/pg-driver.ts";

/**
 * A server that answers every statement in its next turn, one by one, and notes when it was sent; those that are named
 * here it answers with an error.
 */
function driverThatNotes(errors: Readonly<Record<string, Error>> = {}): {
  driver: PgDriver;
  notes: string[];
} {
  const notes: string[] = [];
  const connection = {
    query: (query: PgSubmittable & { readonly name: string }) => {
      const { name } = query;
      notes.push(`sent ${name}`);
      setImmediate(() => {
        const error = errors[name];
        if (error !== undefined) return query.handleError(error);
        query.handleDataRow({ fields: [`done ${name}`] });
        query.handleReadyForQuery();
      });
    },
    on: () => undefined,
    removeListener: () => undefined,
    release: (failure?: Error) => void notes.push(failure === undefined ? "returned" : "discarded"),
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
    expect(notes).toEqual(["sent write", "sent news", "settled", "returned", "ended"]);
  });
});

describe("a statement that another one confirms", () => {
  const confirmed = { name: "write", text: "", confirmedBy: { name: "confirmation", text: "" } };

  it("leaves with it, and is answered with its own rows once both were", async () => {
    const { driver, notes } = driverThatNotes();
    const answer = driver.query(confirmed, []).then((rows) => {
      notes.push("told");
      return rows;
    });
    expect(await answer).toEqual([["done write"]]);
    await driver.query({ name: "next", text: "" }, []);
    // The connection was not given away in between.
    expect(notes).toEqual(["sent write", "sent confirmation", "told", "sent next"]);
    await driver.close();
  });

  it.each([
    ["itself", { write: refusal("55P03") }, "not-applied", "returned"],
    ["what confirms it", { confirmation: refusal("42501") }, "unknown", "discarded"],
    [
      "itself by the end of the connection",
      { write: refusal(""), confirmation: refusal("") },
      "unknown",
      "discarded",
    ],
    [
      "itself, and then the connection ends",
      { write: refusal("55P03"), confirmation: refusal("") },
      "not-applied",
      "returned",
    ],
  ] as const)("fails with %s", async (_case, errors, outcome, fate) => {
    const { driver, notes } = driverThatNotes(errors);
    await expect(driver.query(confirmed, [])).rejects.toMatchObject({ name: "StoreError", outcome });
    await driver.close();
    expect(notes).toEqual(["sent write", "sent confirmation", fate, "ended"]);
  });

  it("is not sent again after what confirms it lost against another one", async () => {
    const { driver, notes } = driverThatNotes({ confirmation: refusal("40001") });
    await expect(driver.query(confirmed, [])).rejects.toMatchObject({ outcome: "unknown" });
    expect(notes.filter((note) => note === "sent write")).toHaveLength(1);
    await driver.close();
  });
});

function refusal(code: string): Error {
  return Object.assign(new Error("planted"), { code });
}
