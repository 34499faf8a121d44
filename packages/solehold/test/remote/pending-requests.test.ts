import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type PendingRequest, PendingRequests } from "../../src/remote/pending-requests.ts";

function request(id: number): PendingRequest {
  const ignore = (): void => undefined;
  return { id, deadlineMs: 0, timeoutMs: 0, resolve: ignore, reject: ignore, stopListening: null };
}

const ids = (pending: PendingRequests): readonly number[] =>
  pending
    .all()
    .map(({ id }) => id)
    .sort((a, b) => a - b);

describe("requests without an answer", () => {
  it("are what a map would hold, however long some of them wait", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("add" as const), count: fc.integer({ min: 1, max: 400 }) }),
      fc.record({ kind: fc.constant("take" as const), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const pending = new PendingRequests();
        const model = new Map<number, PendingRequest>();
        let last = 0;
        for (const each of steps) {
          if (each.kind === "add") {
            for (let count = 0; count < each.count; count += 1) {
              last += 1;
              const added = request(last);
              model.set(last, added);
              pending.add(added);
            }
          } else {
            // Of those that wait, a part is answered: some of the oldest stay.
            const answered = [...model.keys()].filter((id) => (id * 0.618) % 1 < each.part);
            for (const id of answered) {
              expect(pending.take(id)).toBe(model.get(id));
              expect(pending.take(id)).toBeNull();
              model.delete(id);
            }
          }
          expect(pending.size).toBe(model.size);
        }
        expect(ids(pending)).toEqual([...model.keys()]);
        for (const id of model.keys()) expect(pending.has(id)).toBe(true);
      }),
    );
  });

  it("are not found by a number that was never given", () => {
    const pending = new PendingRequests();
    pending.add(request(7));
    for (const id of [-7, 0, 7.5, 263, Number.NaN]) {
      expect(pending.has(id)).toBe(false);
      expect(pending.take(id)).toBeNull();
    }
    expect(ids(pending)).toEqual([7]);
  });
});
