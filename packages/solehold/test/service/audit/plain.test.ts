import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeEvent } from "../../../src/service/audit/chain.ts";
import { TEXT_LIMITS } from "../../../src/service/audit/event.ts";
import type { AuditEvent } from "../../../src/service/audit/index.ts";
import {
  encodePlainEvent,
  MOST_PLAIN_BYTES,
  NOT_PLAIN,
  writePlainEvent,
} from "../../../src/service/audit/plain.ts";
import { encodeAccepted } from "../../../src/service/audit/trail.ts";
import { sanitiseAuditEvent } from "../../../src/service/audit/validate.ts";
import { anyEvent, eventOf } from "./support.ts";

/** Well-formed events of which something was left out, swapped or made too long. */
const brokenEvent = fc
  .tuple(
    anyEvent,
    fc.constantFrom(
      ...Object.keys(TEXT_LIMITS),
      "at",
      "fence",
      "outcome",
      "allowed",
      "detail",
      "token",
      "__proto__",
    ),
    fc.oneof(
      fc.anything(),
      fc.constantFrom(
        "",
        "x".repeat(64),
        "x".repeat(65),
        "x".repeat(1024),
        "x".repeat(1025),
        "9".repeat(39),
        "9".repeat(40),
      ),
    ),
  )
  .map(
    ([event, field, value]) =>
      Object.defineProperty({ ...event }, field, { value, enumerable: true }) as AuditEvent,
  );

describe("the short way into the trail", () => {
  test("is taken by the events that the service makes", () => {
    expect(encodePlainEvent(eventOf({ fence: "0".repeat(39), purpose: "Operation" }))).not.toBeNull();
  });

  test("writes what the gate and the encoder write, whatever comes", () => {
    fc.assert(
      fc.property(fc.oneof(anyEvent, brokenEvent), (event) => {
        const expected = encodeEvent(sanitiseAuditEvent(event));
        expect(encodePlainEvent(event) ?? expected).toBe(expected);
        expect(encodeAccepted(event, "sanitise")).toBe(expected);
      }),
      { numRuns: 5_000 },
    );
  });

  test("does not mix up events that agree in part, one after the other, however many there were before", () => {
    const few = <Value>(...values: readonly Value[]) => fc.constantFrom(...values);
    const alike = fc.record({
      action: few("grant", "release", "LEASE_EXPIRED"),
      allowed: few(true, false),
      reason: few("OK", "LEASE_EXPIRED", "grant"),
      reasonCode: few(0, 1, 10),
      purpose: few("Operation", "Audit"),
      outcome: few<AuditEvent["outcome"]>("applied", "refused", "unknown", "none"),
    });
    const other = fc
      .string()
      .map((text) => ({ action: `a${text}`, reason: `r${text}`, purpose: `p${text}` }));
    const changes = fc.array(fc.oneof({ weight: 3, arbitrary: alike }, other), { maxLength: 80 });
    fc.assert(
      fc.property(changes, (list) => {
        for (const change of list) {
          const event = eventOf(change);
          const expected = encodeEvent(event);
          expect(encodePlainEvent(event) ?? expected).toBe(expected);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("writes where it is told to, and never more than it may", () => {
    const longest = eventOf({
      at: Number.MAX_SAFE_INTEGER,
      reasonCode: Number.MAX_SAFE_INTEGER,
      fence: "9".repeat(39),
      outcome: "unknown",
      ...Object.fromEntries(Object.entries(TEXT_LIMITS).map(([field, limit]) => [field, "~".repeat(limit)])),
    });
    const page = Buffer.alloc(MOST_PLAIN_BYTES + 7, "#");
    const end = writePlainEvent(longest, page, 3);
    expect(page.toString("latin1", 3, end)).toBe(encodeEvent(longest));
    expect(end).toBeLessThanOrEqual(3 + MOST_PLAIN_BYTES);
    expect(page.toString("latin1", 0, 3) + page.toString("latin1", end)).toMatch(/^#+$/);
    expect(writePlainEvent(eventOf({ key: "ü" }), page, 3)).toBe(NOT_PLAIN);
  });

  test("is closed to two halves of a surrogate pair that stand at the ends of neighbouring fields", () => {
    const event = eventOf({ tenant: "a\ud835", key: "\udcb3b" });
    expect(encodePlainEvent(event)).toBeNull();
    expect(JSON.parse(`{${encodeAccepted(event, "refuse")}}`)).toMatchObject({
      tenant: "a\ud835",
      key: "\udcb3b",
    });
  });

  test("reads every field once: what was checked is what is written", () => {
    let reads = 0;
    const event = Object.defineProperty({ ...eventOf() }, "holder", {
      enumerable: true,
      get: () => {
        reads += 1;
        return reads === 1 ? "h" : "x".repeat(TEXT_LIMITS.holder + 1);
      },
    });
    expect(encodePlainEvent(event)).toContain('"holder":"h"');
  });

  test("leaves a getter that throws to the gate", () => {
    const bomb = Object.defineProperty({ ...eventOf() }, "holder", {
      enumerable: true,
      get: () => {
        throw new Error("boom");
      },
    });
    expect(encodeAccepted(bomb, "sanitise")).toContain('"sanitised"');
  });
});
