/** Records are copied field by field: no field may be left out, and a copy must not be another kind of object. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeRecord, draftOf, encodeRecord } from "../../src/core/index.ts";
import { records } from "./arbitraries.ts";
import { acquire, Cell, KEY, release } from "./cell.ts";

describe("a copy of a record", () => {
  it("has every field as it was, and is changed alone", () => {
    fc.assert(
      fc.property(records, (record) => {
        const draft = draftOf(record);
        expect(draft).toEqual(record);
        draft.nonce = `${record.nonce}-other`;
        expect(draft).not.toEqual(record);
      }),
    );
  });

  it("has its fields in the order of a grant, a release and a decoded record, so that all have one shape", () => {
    const cell = new Cell();
    cell.run(acquire("me"), 1_000);
    const granted = cell.record!;
    cell.run(release("me"), 2_000);
    const decoded = decodeRecord(encodeRecord(granted), KEY);
    const shapes = [draftOf(granted), cell.record!, decoded.ok ? decoded.record : {}].map(Object.keys);
    expect(shapes).toEqual(shapes.map(() => Object.keys(granted)));
  });
});
