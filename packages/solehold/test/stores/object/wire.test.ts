import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeRecord, type LeaseRecord } from "../../../src/core/index.ts";
import { decodeWire, encodeWire } from "../../../src/stores/object/wire.ts";
import { writerLeaseOf } from "../../../src/writer/index.ts";

const KEY = { tenant: "default", name: "db" };
const ORIGIN = { previous: "abc", epoch: 3 };
const RECORD: LeaseRecord = {
  key: KEY,
  holder: "writer-a",
  purpose: "StateWrite",
  tokenHash: "hash",
  term: 7n,
  generation: 2n ** 64n - 1n,
  ttlMs: 30_000,
  grantedAtMs: 1_000,
  renewedAtMs: 2_000,
  expiresAtMs: 32_000,
  endedAtMs: null,
  state: "held",
  renewals: 1,
  resumeRequired: false,
  breakAtMs: null,
  minHoldUntilMs: null,
  lockDelayMs: 0,
  handoff: null,
  reservation: null,
  ticket: "",
  nonce: "nonce",
  idempotency: null,
  note: "",
  metadata: {},
};
const SIX = {
  database_key: "db",
  holder_id: "writer-b",
  term: 4,
  generation: 9,
  acquired_at_ms: 100,
  expires_at_ms: 600,
};

function found(text: string): LeaseRecord {
  const decoded = decodeWire(text, KEY);
  if (!decoded.ok) throw new Error(decoded.detail);
  return decoded.record;
}

function damage(text: string): string {
  const decoded = decodeWire(text, KEY);
  return decoded.ok ? "it was read" : decoded.detail;
}

describe("a lease object", () => {
  it("shows its six common fields to any reader of JSON", () => {
    expect(JSON.parse(encodeWire({ ...RECORD, generation: 5n }, ORIGIN))).toMatchObject({
      database_key: "db",
      holder_id: "writer-a",
      term: 7,
      generation: 5,
      acquired_at_ms: 1_000,
      expires_at_ms: 32_000,
    });
  });

  it("brings back the mark of its acquire beside that of a later command", () => {
    const grant = { keyHash: "gk", fingerprint: "gf", sealedToken: "gs" };
    const record = {
      ...RECORD,
      idempotency: { op: "renew", keyHash: "k", fingerprint: "f", sealedToken: "", grant },
    };
    expect(decodeWire(encodeWire(record, ORIGIN), record.key)).toMatchObject({ ok: true, record });
  });

  it("holds the record in core's text form, so that there is one coding of it, and what the store adds", () => {
    const { solehold } = JSON.parse(encodeWire({ ...RECORD, note: 'a "note"' }, ORIGIN));
    expect(solehold.record).toBe(encodeRecord({ ...RECORD, note: 'a "note"' }));
    expect(solehold).toMatchObject({ format: 2, previous: "abc", epoch: 3 });
    expect(solehold.check).toMatch(/^[0-9a-f]{16}$/);
  });

  it("of ours whose common fields somebody changed is damaged: the record says otherwise", () => {
    const text = encodeWire({ ...RECORD, generation: 5n }, ORIGIN);
    const changes = ['"holder_id":"writer-b"', '"term":8', '"generation":6', '"acquired_at_ms":1001'];
    for (const change of [...changes, '"expires_at_ms":32001']) {
      const name = change.slice(0, change.indexOf(":"));
      const changed = text.replace(new RegExp(`${name}:[^,]*`), change);
      expect(changed).not.toBe(text);
      expect(damage(changed)).toBe("its check does not fit its content");
    }
  });

  it("of ours is read whatever its white space is, and with fields beside ours", () => {
    const fields = JSON.parse(encodeWire({ ...RECORD, generation: 5n }, ORIGIN));
    expect(found(JSON.stringify({ region: "x", ...fields }, null, 2))).toEqual({ ...RECORD, generation: 5n });
  });

  it("of another format names both", () => {
    const text = encodeWire(RECORD, ORIGIN).replace('"format":2', '"format":9');
    expect(damage(text)).toBe("it has format 9, this version reads format 2");
  });

  it("comes back as it was written, with where it came from", () => {
    expect(decodeWire(encodeWire(RECORD, ORIGIN), KEY)).toEqual({ ok: true, record: RECORD, origin: ORIGIN });
  });

  it("carries terms and generations above 2^53 exactly, as JSON integers", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 64n - 1n), fc.bigInt(0n, 2n ** 64n - 1n), (term, generation) => {
        const text = encodeWire({ ...RECORD, term, generation }, ORIGIN);
        expect(text).toContain(`"term":${term},"generation":${generation},`);
        expect(found(text)).toMatchObject({ term, generation });
      }),
    );
    const foreign = JSON.stringify(SIX).replace('"generation":9', '"generation" : 9007199254740993');
    expect(found(foreign).generation).toBe(9_007_199_254_740_993n);
  });

  it("is released for others by having expired", () => {
    const released: LeaseRecord = { ...RECORD, state: "released", endedAtMs: 5_000 };
    const text = encodeWire(released, ORIGIN);
    expect(JSON.parse(text)).toMatchObject({ expires_at_ms: 5_000 });
    expect(found(text)).toEqual(released);
    const offered = { ...released, handoff: { successor: "writer-c", deadlineMs: 9_000 } };
    expect(JSON.parse(encodeWire(offered, ORIGIN))).toMatchObject({ expires_at_ms: 9_000 });
  });

  it("that others wrote with six fields is a held writer lease", () => {
    const record = found(JSON.stringify(SIX));
    expect(record).toMatchObject({ holder: "writer-b", state: "held", purpose: "StateWrite" });
    expect(writerLeaseOf(record)).toEqual({
      databaseKey: "db",
      holderId: "writer-b",
      term: 4n,
      generation: 9n,
      acquiredAtMs: 100,
      expiresAtMs: 600,
    });
  });

  it("without a term has term 1, and ignores fields that nobody knows", () => {
    const { term: _term, ...legacy } = SIX;
    expect(
      found(JSON.stringify({ ...legacy, region: "x", more: { term: 9, list: [1, { generation: 2 }] } })),
    ).toMatchObject({ term: 1n, generation: 9n });
  });

  it.each(["database_key", "holder_id", "generation", "acquired_at_ms", "expires_at_ms"])(
    "without its %s is damaged, and says so",
    (field) => {
      const rest = Object.fromEntries(Object.entries(SIX).filter(([name]) => name !== field));
      expect(damage(JSON.stringify(rest))).toBe(`its field ${field} is missing`);
    },
  );

  it.each([
    ["a fraction", '"generation":9', '"generation":9.5', /its generation 9.5 is not/],
    ["an exponent", '"generation":9', '"generation":9e3', /its generation 9e3 is not/],
    ["a text", '"generation":9', '"generation":"9"', /its generation "9" is not/],
    ["more than 64 bits", '"generation":9', '"generation":18446744073709551616', /is not an unsigned 64-bit/],
    ["a negative term", '"term":4', '"term":-4', /its term -4 is not/],
    ["an instant above 2^53", "600", "9007199254740993", /expires_at_ms 900\d+ is too large/],
    ["another key", '"db"', '"other"', /belongs to another key/],
    ["half of it", ',"expires_at_ms":600}', "", /JSON/],
    ["an array", /^.*$/, "[]", /not a JSON object/],
  ])("with %s is damaged", (_what, part, replacement, detail) => {
    expect(damage(JSON.stringify(SIX).replace(part, replacement))).toMatch(detail);
  });

  it("of ours in which any one digit or letter changed is damaged", () => {
    const text = encodeWire({ ...RECORD, generation: 41n }, ORIGIN);
    const changeable = [...text.matchAll(/(?<=[:"\w])[0-9a-z](?=[\w",}])/g)].map(({ index }) => index);
    fc.assert(
      fc.property(fc.constantFrom(...changeable), (index) => {
        const character = text[index] === "3" ? "4" : "3";
        const decoded = decodeWire(`${text.slice(0, index)}${character}${text.slice(index + 1)}`, KEY);
        // A common field that lost its name is missing; `solehold` without its name is an extra field.
        expect(decoded.ok && decoded.origin !== null).toBe(false);
      }),
    );
  });

  it("of another tenant is damaged here", () => {
    const text = encodeWire({ ...RECORD, key: { tenant: "other", name: "db" } }, ORIGIN);
    expect(damage(text)).toBe("it belongs to another key");
  });
});
