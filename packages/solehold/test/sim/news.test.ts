import { describe, expect, it } from "vitest";
import type { LeaseRecord } from "../../src/core/index.ts";
import { RandomStream } from "../../src/sim/index.ts";
import { holdingEvent, type NewsForm } from "../../src/sim/store/news.ts";
import { ABSENT, type StoredRecord, type StoreEvent } from "../../src/store/index.ts";

const KEY = { tenant: "default", name: "key" };

function stored(state: LeaseRecord["state"], holder = "n1", generation = 7n): StoredRecord {
  return { kind: "found", version: "12", record: { key: KEY, state, holder, generation } as LeaseRecord };
}

function told(form: NewsForm, what: StoredRecord, seed = 1) {
  const looks: StoredRecord[] = [];
  const event = holdingEvent(KEY, what, {
    form,
    random: new RandomStream(seed, "told ends"),
    onLook: (_key, shown) => looks.push(shown),
  });
  return { event: event as Extract<StoreEvent, { kind: "changed" }>, looks };
}

describe("news for who wants to know only whether a key is held", () => {
  it("has the record only in the form that says so", () => {
    const held = stored("held");
    expect(told("records", held).event).toEqual({
      kind: "changed",
      key: KEY,
      record: held.kind === "found" && held.record,
    });
    expect(told("held", held).event).toEqual({ kind: "changed", key: KEY, record: null, held: "yes" });
    expect(told("held", stored("revoked")).event).toMatchObject({ record: null, held: "no" });
  });

  it("marks holders and grants, so that they can be told apart and no more", () => {
    const [first, second] = [told("marks", stored("held")).event, told("marks", stored("released")).event];
    expect([first.by, first.grant]).toEqual([second.by, second.grant]);
    expect(told("marks", stored("held", "n2")).event.by).not.toBe(first.by);
    expect(told("marks", stored("held", "n1", 8n)).event.grant).not.toBe(first.grant);
    expect(second.stored).toBeUndefined();
  });

  it("brings what was written with most ends, as a read would have shown it, and counts who looks", () => {
    const end = stored("released");
    const shown = Array.from({ length: 200 }, (_, seed) => {
      const { event, looks } = told("marks and ends", end, seed);
      if (event.stored === undefined) return "left out";
      const seen = event.stored();
      expect(looks).toEqual(seen === null ? [] : [end]);
      return seen === end ? "shown" : "not understood";
    });
    expect(new Set(shown)).toEqual(new Set(["left out", "not understood", "shown"]));
    expect(shown.filter((each) => each === "shown").length).toBeGreaterThan(100);
  });

  it("without a mark of the grant still says who gave the key back, and nothing of who has it", () => {
    const { event } = told("ends", stored("released"));
    expect([typeof event.by, event.grant]).toEqual(["string", undefined]);
    const { event: held } = told("ends", stored("held"));
    expect([held.by, held.grant, held.stored]).toEqual([undefined, undefined, undefined]);
  });

  it("says of a record that is gone that nobody holds it", () => {
    for (const form of ["held", "marks", "ends", "marks and ends"] as const)
      expect(told(form, ABSENT).event).toEqual({ kind: "changed", key: KEY, record: null, held: "no" });
  });
});
