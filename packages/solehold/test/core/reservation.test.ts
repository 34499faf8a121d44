/** A release that keeps the lease for one waiter: only its ticket is let in until the deadline, then anybody is. */
import { describe, expect, it } from "vitest";
import {
  type AcquireCommand,
  commandProblem,
  endOfRecord,
  type ReleaseCommand,
} from "../../src/core/index.ts";
import { acquire, Cell, handoff, leaseOf, outcome, release, renew } from "./cell.ts";

const reserveFor = { ticket: "ticket.1", withinMs: 250 };

function reserved(): Cell {
  const cell = new Cell();
  cell.run(acquire("a"), 1_000);
  cell.run({ ...release("a"), reserveFor } as ReleaseCommand, 2_000);
  return cell;
}

function ticketed(holder: string, ticket: string): AcquireCommand {
  return { ...acquire(holder), ticket } as AcquireCommand;
}

describe("a reservation", () => {
  it("is written by the release, and is no handoff: the work was finished", () => {
    const cell = reserved();
    expect(cell.record).toMatchObject({
      state: "released",
      handoff: null,
      reservation: { ticket: "ticket.1", deadlineMs: 2_250 },
    });
    const granted = cell.run(ticketed("b", "ticket.1"), 2_100);
    expect(granted.decision).toMatchObject({ kind: "granted", resumeFromLedgerRequired: false });
    expect(leaseOf(granted)).toMatchObject({ holder: "b", reservation: null, ticket: "ticket.1" });
  });

  it.each([
    [2_000, "LEASE_RESERVED"],
    [2_249, "LEASE_RESERVED"],
    [2_250, "granted"],
    [2_251, "granted"],
  ])("gives everybody else, at %i with a deadline of 2250: %s", (now, expected) => {
    expect(outcome(reserved().ask(acquire("c"), now))).toBe(expected);
    expect(outcome(reserved().ask(acquire("a"), now))).toBe(expected);
    expect(outcome(reserved().ask(ticketed("c", "ticket.2"), now))).toBe(expected);
  });

  it("has passed for others only when even the earliest store time says so", () => {
    const wide = { earliestMs: 2_249, latestMs: 2_500, stampMs: 2_500 };
    expect(outcome(reserved().ask(acquire("c"), wide))).toBe("LEASE_RESERVED");
  });

  it("is denied with the instant from which waiting helps, and with nobody's name", () => {
    expect(reserved().ask(acquire("c"), 2_100).decision).toEqual({
      kind: "denied",
      reason: "LEASE_RESERVED",
      heldBy: null,
      heldUntilMs: 2_250,
      fence: 1n,
    });
  });

  it("keeps the record until its deadline", () => {
    expect(endOfRecord(reserved().record!)).toBe(2_250);
  });

  it("does not outlive the next lease, which shows the ticket that it was granted by", () => {
    const cell = reserved();
    cell.run(ticketed("b", "ticket.1"), 2_100);
    cell.run(renew("b"), 2_150);
    expect(cell.record).toMatchObject({ reservation: null, ticket: "ticket.1" });
    cell.run(handoff("b", "c"), 2_200);
    expect(cell.record).toMatchObject({ reservation: null, handoff: { successor: "c" } });
  });

  it.each([
    ["reserveFor", 5],
    ["reserveFor.ticket", { ticket: "", withinMs: 1 }],
    ["reserveFor.ticket", { ticket: "t".repeat(65), withinMs: 1 }],
    ["reserveFor.withinMs", { ticket: "t", withinMs: 0 }],
    ["reserveFor.withinMs", { ticket: "t", withinMs: 10_001 }],
  ])("is refused by %s", (field, value) => {
    expect(commandProblem({ ...release("a"), reserveFor: value })?.field).toBe(field);
  });
});

describe("metadata", () => {
  it("is part of the grant, and stays with renewals and the release", () => {
    const cell = new Cell();
    const metadata = { url: "http://a:1", "build/id": "" };
    cell.run({ ...acquire("a"), metadata } as AcquireCommand, 1_000);
    cell.run(renew("a"), 1_500);
    expect(cell.record?.metadata).toEqual(metadata);
    cell.run(release("a"), 2_000);
    expect(cell.record?.metadata).toEqual(metadata);
    cell.run(acquire("b"), 3_000);
    expect(cell.record?.metadata).toEqual({});
  });

  it.each([
    [null, /must be an object/],
    [["a"], /must be an object/],
    [{ "a b": "c" }, /the name "a b"/],
    [{ ["x".repeat(65)]: "c" }, /the name/],
    [{ a: 1 }, /entry 'a', which must be a string/],
    [{ a: "line\nbreak" }, /entry 'a'/],
    [{ a: "v".repeat(257) }, /at most 256/],
    [Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`n${index}`, ""])), /at most 16 entries/],
    [
      Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`n${index}`, "v".repeat(250)])),
      /2048 characters/,
    ],
  ])("such as %j is refused", (metadata, message) => {
    const problem = commandProblem({ ...acquire("a"), metadata });
    expect(problem).toMatchObject({ field: "metadata", message: expect.stringMatching(message) });
  });
});
