import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_LINE_BYTES } from "../../src/audit/entry.ts";
import { encodeEvent, genesis, seal } from "../../src/audit/hash-chain.ts";
import type { AuditEvent } from "../../src/audit/index.ts";
import { AuditError, checkAuditEvent, sanitiseAuditEvent } from "../../src/audit/index.ts";
import { anyEvent, eventOf } from "./support.ts";

const SECRET = "s3cr3t-token-value";
const TOO_LONG = "k".repeat(1025);

const details = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]));

function refusal(event: unknown): string {
  try {
    checkAuditEvent(event as AuditEvent);
  } catch (error) {
    expect(error).toBeInstanceOf(AuditError);
    expect(error).toMatchObject({ code: "AUDIT_EVENT_INVALID", retryable: false });
    return (error as AuditError).message;
  }
  throw new Error("the event was accepted");
}

describe("checkAuditEvent", () => {
  test("accepts every event within the limits and returns it frozen and detached", () => {
    fc.assert(
      fc.property(anyEvent, (event) => {
        const copy = structuredClone(event);
        const checked = checkAuditEvent(event);
        expect(checked).toEqual(copy);
        expect(checked).not.toBe(event);
        expect(
          Object.isFrozen(checked) && (checked.detail === undefined || Object.isFrozen(checked.detail)),
        ).toBe(true);
      }),
    );
  });

  test.each<[string, object, RegExp]>([
    ["a negative time", { at: -1 }, /at must be a whole number .* got -1/],
    ["a fraction of a millisecond", { at: 1.5 }, /at must be a whole number .* got 1\.5/],
    ["a time that is no number", { at: Number.NaN }, /at must be a whole number .* got NaN/],
    ["a reason code as text", { reasonCode: "12" }, /reasonCode must be a whole number .* got "12"/],
    ["a number for a tenant", { tenant: 7 }, /tenant must be a string of at most 256 characters; got 7/],
    ["a long key", { key: TOO_LONG }, /key must be a string of at most 1024 characters; got "k{60}"\.\.\./],
    ["an empty action", { action: "" }, /action must not be empty/],
    ["no reason", { reason: undefined }, /reason must be a string .* got undefined/],
    ["a word for allowed", { allowed: "yes" }, /allowed must be true or false; got "yes"/],
    ["an unknown outcome", { outcome: "maybe" }, /outcome must be one of applied, .*, none; got "maybe"/],
    ["a hexadecimal fence", { fence: "0x1" }, /fence must be a decimal string .* got "0x1"/],
    ["a bigint for a fence", { fence: 3n }, /fence must be a decimal string .* got 3/],
    ["null for a holder", { holder: null }, /holder must be a string .* got null/],
    ["a list for details", { detail: [] }, /detail must be an object/],
    ["a detail named by a number", { detail: { "1a": 1 } }, /detail keys must be a letter.* got "1a"/],
    ["a detail with an underscore first", { detail: { _a: 1 } }, /detail keys must be a letter/],
    ["a nested detail", { detail: { a: {} } }, /detail\.a must be a boolean, .* got object/],
    ["an endless detail", { detail: { a: Number.POSITIVE_INFINITY } }, /detail\.a must be .* got Infinity/],
    ["a long detail", { detail: { a: TOO_LONG } }, /detail\.a must be .*1024 characters/],
    ["too many details", { detail: details(25) }, /detail must have at most 24 keys; got 25/],
  ])("refuses %s and says which field, what it was and what it must be", (_, changes, message) => {
    expect(refusal({ ...eventOf(), ...changes })).toMatch(message);
  });

  test.each([
    { token: SECRET },
    { leaseToken: SECRET },
    { anything: SECRET },
    { detail: { token: SECRET } },
    { detail: { leaseToken: SECRET } },
    { detail: { Authorization: SECRET } },
    { detail: { apiKey: SECRET } },
  ])("refuses %j without repeating the value", (changes) => {
    const message = refusal({ ...eventOf(), ...changes });
    expect(message).not.toContain(SECRET);
    expect(message).toMatch(/remove it|leave it out/);
  });
});

describe("sanitiseAuditEvent", () => {
  test("leaves a good event as it is", () => {
    fc.assert(
      fc.property(anyEvent, (event) => {
        expect(sanitiseAuditEvent(event)).toEqual(checkAuditEvent(event));
      }),
    );
  });

  test("never throws, and what it returns is always a good event that fits a line", () => {
    const fields =
      "at tenant key leaseId action allowed reason reasonCode holder fence purpose traceId outcome detail";
    const hostile = fc.record(
      Object.fromEntries(fields.split(" ").map((field) => [field, fc.anything({ withBigInt: true })])),
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.anything({ withBigInt: true, withNullPrototype: true }), hostile), (event) => {
        const clean = sanitiseAuditEvent(event);
        expect(checkAuditEvent(clean)).toEqual(clean);
      }),
      { numRuns: 2000 },
    );
  });

  test("survives getters and proxies that throw, and records that there was something", () => {
    const bomb = {
      get tenant(): string {
        throw new Error("boom");
      },
    };
    const proxy = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("boom");
        },
      },
    );
    for (const event of [bomb, proxy]) {
      expect(sanitiseAuditEvent(event)).toMatchObject({ action: "unnamed", allowed: false });
      expect(sanitiseAuditEvent(event).detail?.sanitised).toContain("event");
    }
  });

  test("cuts what is too long, keeps the rest, and says which fields it changed", () => {
    const clean = sanitiseAuditEvent({
      ...eventOf({ holder: "h".repeat(300) }),
      key: `${"k".repeat(1023)}𝒳`,
      fence: 12n,
    });
    expect(clean.key).toBe("k".repeat(1023));
    expect(clean.holder).toBe("h".repeat(256));
    expect(clean).toMatchObject({ tenant: "acme", action: "grant", fence: "12" });
    expect(clean.detail).toEqual({ sanitised: "key,holder,fence" });
  });

  test("keeps no secret, not even with details already at their limit", () => {
    const clean = sanitiseAuditEvent({
      ...eventOf(),
      token: SECRET,
      detail: { password: SECRET, ...details(40) },
    });
    expect(JSON.stringify(clean)).not.toContain(SECRET);
    expect(Object.keys(clean.detail ?? {})).toHaveLength(24);
    expect(clean.detail?.sanitised).toBe("token,detail.password,detail");
  });

  test("the longest event there can be still fits into the longest line that a reader takes", () => {
    const worst = "\u0001".repeat(5000);
    const texts = "tenant key leaseId action reason holder purpose traceId"
      .split(" ")
      .map((field) => [field, worst]);
    const detail = Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`${"k".repeat(60)}${i}`, worst]));
    const clean = sanitiseAuditEvent({
      ...eventOf(),
      ...Object.fromEntries(texts),
      fence: "9".repeat(39),
      detail,
    });
    expect(Buffer.byteLength(seal(encodeEvent(clean), genesis("t")).line)).toBeLessThan(MAX_LINE_BYTES);
  });
});
