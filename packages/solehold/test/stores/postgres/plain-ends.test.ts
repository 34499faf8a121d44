/** What is told of an end, who can make something of it, and who cannot. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LeaseRecord } from "../../../src/core/index.ts";
import { isPlainEnd, KnownRows, toldEnd } from "../../../src/stores/postgres/plain-ends.ts";
import { key, record } from "./support.ts";

const BEFORE = "6f1c1f0e-0000-4000-8000-000000000000";
const VERSION = "6f1c1f0e-0000-4000-8000-000000000001";
const KEY = key("job");
const ID = "default/job";
const held = record(KEY, { note: "a note", generation: 7n });
const ended: LeaseRecord = { ...held, state: "released", endedAtMs: 1_750_000_000_123, nonce: "nonce_2-b" };
const told = toldEnd(ended, VERSION, BEFORE, ID) ?? "";

function knowing(version: string, of: LeaseRecord = held, whose = KEY): KnownRows {
  const known = new KnownRows();
  known.listen();
  known.note(whose, version, of);
  return known;
}

describe("a plain end", () => {
  it("changes the state, the instant and the nonce, and nothing else", () => {
    expect(isPlainEnd(held, ended)).toBe(true);
    expect(isPlainEnd(held, { ...ended, state: "revoked" })).toBe(true);
    const others: Omit<{ [Field in keyof LeaseRecord]: LeaseRecord[Field] }, "key" | "endedAtMs" | "nonce"> =
      {
        state: "held",
        holder: "another",
        purpose: "StateWrite",
        tokenHash: "another",
        term: 1n,
        generation: 8n,
        ttlMs: 1,
        grantedAtMs: 1,
        renewedAtMs: 1,
        expiresAtMs: 1,
        renewals: 1,
        resumeRequired: true,
        breakAtMs: 1,
        handoff: { successor: "another", deadlineMs: 1 },
        idempotency: { op: "release", keyHash: "k", fingerprint: "f", sealedToken: "" },
        note: "another",
      };
    for (const [field, value] of Object.entries(others))
      expect(isPlainEnd(held, { ...ended, [field]: value }), field).toBe(false);
    expect(Object.keys({ ...others, key: 0, endedAtMs: 0, nonce: 0 }).toSorted()).toEqual(
      Object.keys(held).toSorted(),
    );
  });

  it("is of a lease that was held", () => {
    expect(isPlainEnd({ ...held, state: "revoked" }, ended)).toBe(false);
  });
});

describe("what is told of an end", () => {
  it("is the whole row for who knows the one before, whatever is in it", () => {
    const fields = fc.record({
      state: fc.constantFrom<LeaseRecord["state"]>("released", "revoked"),
      endedAtMs: fc.option(fc.nat()),
      nonce: fc.stringMatching(/^[\w-]{1,40}$/),
    });
    fc.assert(
      fc.property(fields, fc.uuid(), fc.uuid(), (changes, before, version) => {
        const text = toldEnd(changes, version, before, ID) ?? "";
        expect(text).toMatch(/^[^/,\s]+$/);
        const stored = knowing(before).storedFrom(KEY, text);
        expect(stored).toEqual({ kind: "found", record: { ...held, ...changes }, version });
      }),
    );
  });

  it("is nothing for who knows another version, another key, or none", () => {
    expect(knowing(VERSION).storedFrom(KEY, told)).toBeNull();
    expect(knowing(BEFORE, held, key("other")).storedFrom(key("other"), told)).toBeNull();
    expect(new KnownRows().storedFrom(KEY, told)).toBeNull();
  });

  it("cannot be made by who did not know the version before", () => {
    const known = knowing(BEFORE);
    const parts = told.split(":");
    for (const index of parts.keys()) {
      const forged = parts.map((part, at) => (at === index ? part.replace(/.$/, "~") : part)).join(":");
      expect(known.storedFrom(KEY, forged), forged).toBeNull();
    }
    for (const text of ["", ":", told.slice(0, told.lastIndexOf(":"))])
      expect(known.storedFrom(KEY, text)).toBeNull();
  });

  it("means nothing over a lease that had ended, whose version everybody has heard", () => {
    const later = toldEnd(ended, BEFORE, VERSION, ID) ?? "";
    expect(knowing(VERSION, ended).storedFrom(KEY, later)).toBeNull();
  });

  it("names nobody, and does not show the version before", () => {
    for (const secret of [held.holder, held.tokenHash, held.note, BEFORE]) expect(told).not.toContain(secret);
  });

  it("is not told of a nonce that would not fit into the line", () => {
    for (const nonce of ["a/b", "a,b", "a:b", "a\nb", ""])
      expect(toldEnd({ ...ended, nonce }, VERSION, BEFORE, ID)).toBeNull();
  });
});

describe("known rows", () => {
  const isKnown = (known: KnownRows): boolean => known.storedFrom(KEY, told) !== null;

  it("are those of the version that was seen last", () => {
    const known = knowing(BEFORE);
    expect(isKnown(known)).toBe(true);
    known.note(KEY, VERSION, held);
    expect(isKnown(known)).toBe(false);
    known.note(KEY, BEFORE, held);
    expect(isKnown(known)).toBe(true);
    known.note(KEY, VERSION, ended);
    expect(isKnown(known)).toBe(false);
  });

  it("are not kept for ever", () => {
    const known = knowing(BEFORE);
    for (let index = 0; index < 9_999; index += 1) known.note(key(`${index}`), VERSION, held);
    expect(isKnown(known)).toBe(true);
    known.note(key("9999"), VERSION, held);
    expect(isKnown(known)).toBe(false);
  });

  it("are kept while anybody listens, and only then", () => {
    const known = new KnownRows();
    known.note(KEY, BEFORE, held);
    known.listen();
    expect(isKnown(known)).toBe(false);
    known.note(KEY, BEFORE, held);
    known.listen();
    known.forget();
    expect(isKnown(known)).toBe(true);
    known.forget();
    known.listen();
    expect(isKnown(known)).toBe(false);
  });
});
