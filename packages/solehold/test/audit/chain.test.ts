import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeEntry, encodeEvent, genesis, readEntry, readFrame, seal } from "../../src/audit/hash-chain.ts";
import { checkAuditEvent, MemoryAuditTrail } from "../../src/audit/index.ts";
import { anyEvent, eventOf } from "./support.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

describe("the chain's format", () => {
  test("an entry is exactly the documented bytes, hash included", () => {
    const start = genesis("trail-1");
    expect(start).toEqual({ sequence: 0, hash: sha256("solehold/audit/1/genesis:trail-1") });
    const event = checkAuditEvent(
      eventOf({ fence: "7", purpose: "write", detail: { z: 1, a: "x", ok: true } }),
    );
    const body =
      `{"sequence":1,"previousHash":"${start.hash}","at":1700000000000,"tenant":"acme","key":"reports/nightly",` +
      '"leaseId":"lease-1","action":"grant","allowed":true,"reason":"OK_DECISION_COMPUTE","reasonCode":1280507906,' +
      '"holder":"worker-1","fence":"7","purpose":"write","traceId":"trace-1","outcome":"applied",' +
      '"detail":{"a":"x","ok":true,"z":1}';
    const hash = sha256(`${body}}`);
    expect(seal(encodeEvent(event), start)).toEqual({ line: `${body},"hash":"${hash}"}`, hash });
  });

  test("an entry that says who asked, and from where, has both before its trace", () => {
    const event = checkAuditEvent(eventOf({ caller: "0123456789ab", address: "::1" }));
    expect(encodeEvent(event)).toContain(
      '"holder":"worker-1","caller":"0123456789ab","address":"::1","traceId":"trace-1"',
    );
  });

  test("every event is encoded as JSON.stringify would, and comes back unchanged", () => {
    fc.assert(
      fc.property(anyEvent, (given) => {
        const event = checkAuditEvent(given);
        const encoded = encodeEvent(event);
        expect(`{${encoded}}`).toBe(JSON.stringify(event));
        const { line, hash } = seal(encoded, genesis("t"));
        const bytes = Buffer.from(line);
        const frame = readFrame(bytes);
        expect(frame).toEqual({ sequence: 1, previousHash: genesis("t").hash, hash, intact: true });
        const entry = readEntry(bytes, frame!);
        expect(entry).toEqual(JSON.parse(line));
        expect(encodeEntry(entry!)).toBe(line);
      }),
      { numRuns: 500 },
    );
  });

  test("a verifier of twenty lines that knows only the documentation accepts a trail", async () => {
    const trail = new MemoryAuditTrail({ capacity: 100, trailId: "doc" });
    fc.sample(anyEvent, 50).forEach((event) => {
      trail.append(event);
    });
    const lines = (await trail.query({ limit: 100 })).map(encodeEntry);
    let previous = sha256("solehold/audit/1/genesis:doc");
    for (const [index, line] of lines.entries()) {
      const bytes = Buffer.from(line);
      const body = Buffer.concat([bytes.subarray(0, bytes.length - 75), Buffer.from("}")]);
      const entry = JSON.parse(line) as Record<string, unknown>;
      expect(entry.sequence).toBe(index + 1);
      expect(entry.previousHash).toBe(previous);
      previous = createHash("sha256").update(body).digest("hex");
      expect(entry.hash).toBe(previous);
    }
    expect(trail.head()).toEqual({ sequence: 50, hash: previous });
  });

  test("the order in which details were written does not change the hash", () => {
    const first = checkAuditEvent(eventOf({ detail: { b: 1, a: 2 } }));
    const second = checkAuditEvent(eventOf({ detail: { a: 2, b: 1 } }));
    expect(encodeEvent(first)).toBe(encodeEvent(second));
  });

  test("trails with different ids share no entry", () => {
    const encoded = encodeEvent(checkAuditEvent(eventOf()));
    expect(seal(encoded, genesis("a")).hash).not.toBe(seal(encoded, genesis("b")).hash);
  });

  test.each(["", "has space", "-leading", "x".repeat(129), "new\nline"])(
    "the trail id %j is refused",
    (trailId) => {
      expect(() => genesis(trailId)).toThrow(/trailId must be 1 to 128 letters/);
    },
  );

  test("a line that gives a chain field twice is not an entry, even with a fitting hash", () => {
    const start = genesis("t");
    const event = `${encodeEvent(checkAuditEvent(eventOf()))},"sequence":9`;
    const bytes = Buffer.from(seal(event, start).line);
    const frame = readFrame(bytes);
    expect(frame?.intact).toBe(true);
    expect(readEntry(bytes, frame!)).toBeNull();
  });
});
