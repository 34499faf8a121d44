/** That a signature fits one request only: every signed field, every spelling, every other use. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Approval,
  type ApprovalRequest,
  approvalId,
  encodeApproval,
  MAX_APPROVAL_WINDOW_MS,
  signApproval,
} from "../../src/approvals/index.ts";
import {
  approve,
  codesOf,
  NOT_AFTER_MS,
  NOT_BEFORE_MS,
  payloadFor,
  quorumOf,
  REQUEST,
  testKey,
  verify,
} from "./fixtures.ts";

const ONE_SIGNER = quorumOf(["s1"], { thresholds: { standard: 1, risky: 1, dangerous: 1 } });
const GOOD = approve("s1");
const FORGED = [
  { kind: "InvalidSignature", code: "LC_INVALID_SIGNATURE", signerId: "s1", fault: "mismatch" },
  { kind: "BelowQuorum", code: "LC_BELOW_QUORUM", required: 1, received: 0 },
];
const MALFORMED = [{ ...FORGED[0], fault: "malformed" }, FORGED[1]];

function failuresOf(approval: unknown, request: ApprovalRequest = REQUEST) {
  const result = verify(ONE_SIGNER, [approval as Approval], { request });
  expect(result.passed).toBe(false);
  expect(result.accepted).toEqual([]);
  return result.failures;
}

describe("a good approval", () => {
  it("passes, so that the refusals below are refusals of what was changed", () => {
    expect(verify(ONE_SIGNER, [GOOD])).toMatchObject({ passed: true, received: 1, failures: [] });
  });

  it("is the same every time it is signed, and frozen", () => {
    expect(approve("s1")).toEqual(GOOD);
    expect(Object.isFrozen(GOOD)).toBe(true);
  });
});

describe("a signature reused for another request", () => {
  const changes: readonly (readonly [string, Partial<ApprovalRequest>])[] = [
    ["tenant", { tenant: "acme2" }],
    ["key", { key: "db/other" }],
    ["holder", { holder: "writer-b" }],
    ["purpose", { purpose: "Operation" }],
    ["tier", { tier: "Standard" }],
    ["action", { action: "revoke" }],
    ["ttlMs", { ttlMs: 15_001 }],
    ["nonce", { nonce: "bm9uY2Utb2YtcmVxdWVzdB" }],
  ];

  it.each(changes)("with another %s is LC_INVALID_SIGNATURE", (_, change) => {
    expect(failuresOf(GOOD, { ...REQUEST, ...change })).toEqual(FORGED);
  });

  it.each<[string, Partial<typeof REQUEST>]>([
    ["the end of one field moved to the next", { tenant: "acm", key: "edb/main" }],
    ["two fields exchanged", { holder: "MigrationHandoff", purpose: "writer-a" }],
    ["another case", { holder: "Writer-a" }],
    ["another Unicode form of the same letter", { holder: "writer-á".normalize("NFD") }],
  ])("with %s is LC_INVALID_SIGNATURE", (_, change) => {
    expect(
      failuresOf(approve("s1", { ...REQUEST, holder: change.holder ? "writer-á" : "writer-a" }), {
        ...REQUEST,
        ...change,
      }),
    ).toEqual(FORGED);
  });

  it.each([
    ["opened earlier", { notBeforeMs: NOT_BEFORE_MS - 1 }],
    ["opened later", { notBeforeMs: NOT_BEFORE_MS + 1 }],
    ["prolonged", { notAfterMs: NOT_AFTER_MS + 1 }],
    ["shortened", { notAfterMs: NOT_AFTER_MS - 1 }],
  ])("with its window %s is LC_INVALID_SIGNATURE", (_, change) => {
    expect(failuresOf({ ...GOOD, ...change })).toEqual(FORGED);
  });

  it("by another known signer is LC_INVALID_SIGNATURE", () => {
    const two = quorumOf(["s1", "s2"], { thresholds: { standard: 1, risky: 1, dangerous: 1 } });
    expect(codesOf(verify(two, [{ ...GOOD, signerId: "s2" }]))).toEqual([
      "LC_INVALID_SIGNATURE",
      "LC_BELOW_QUORUM",
    ]);
  });
});

describe("a damaged signature", () => {
  it("with any one bit flipped is LC_INVALID_SIGNATURE", () => {
    const bytes = Buffer.from(GOOD.signature, "base64url");
    for (let bit = 0; bit < 512; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      expect(failuresOf({ ...GOOD, signature: flipped.toString("base64url") }), `bit ${bit}`).toEqual(FORGED);
    }
  });

  it("whose scalar was raised by the group order is refused, though the equation still holds", () => {
    const order = 2n ** 252n + 27742317777372353535851937790883648493n;
    const bytes = Buffer.from(GOOD.signature, "base64url");
    let scalar = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString("hex")}`) + order;
    for (let index = 32; index < 64; index += 1, scalar >>= 8n) bytes[index] = Number(scalar & 255n);
    expect(failuresOf({ ...GOOD, signature: bytes.toString("base64url") })).toEqual(FORGED);
  });

  const lastCharacter = GOOD.signature.slice(-1);
  const strayBits = String.fromCharCode(lastCharacter.charCodeAt(0) + 1);

  it.each<readonly [string, unknown]>([
    ["nothing", ""],
    ["a cut end", GOOD.signature.slice(0, -1)],
    ["a cut byte", Buffer.from(GOOD.signature, "base64url").subarray(0, 63).toString("base64url")],
    [
      "an added byte",
      Buffer.concat([Buffer.from(GOOD.signature, "base64url"), Buffer.alloc(1)]).toString("base64url"),
    ],
    ["padding", `${GOOD.signature}==`],
    ["the other alphabet", Buffer.from(GOOD.signature, "base64url").toString("base64").replace(/=+$/, "")],
    ["hexadecimal", Buffer.from(GOOD.signature, "base64url").toString("hex")],
    ["a space in front", ` ${GOOD.signature.slice(1)}`],
    ["a line break at the end", `${GOOD.signature.slice(0, -1)}\n`],
    ["stray bits in the last character", GOOD.signature.slice(0, -1) + strayBits],
    ["a number", 7],
    ["no value", undefined],
    ["bytes", Buffer.from(GOOD.signature, "base64url")],
  ])("re-encoded or cut (%s) is malformed", (_, signature) => {
    expect(signature).not.toBe(GOOD.signature);
    expect(failuresOf({ ...GOOD, signature })).toEqual(MALFORMED);
  });

  it.each([
    ["a text", { notAfterMs: `${NOT_AFTER_MS}` }],
    ["a fraction", { notAfterMs: NOT_AFTER_MS + 0.5 }],
    ["negative", { notBeforeMs: -1 }],
    ["turned round", { notBeforeMs: NOT_AFTER_MS, notAfterMs: NOT_BEFORE_MS }],
    ["empty", { notBeforeMs: NOT_AFTER_MS, notAfterMs: NOT_AFTER_MS }],
    ["wider than the limit", { notBeforeMs: 0, notAfterMs: MAX_APPROVAL_WINDOW_MS + 1 }],
    ["missing", { notAfterMs: undefined }],
  ])("with a window that is %s is malformed", (_, window) => {
    expect(failuresOf({ ...GOOD, ...window })).toEqual(MALFORMED);
  });
});

describe("the canonical bytes", () => {
  const text = fc.string({ minLength: 1, maxLength: 6, unit: fc.constantFrom(..."ab/é\u{1f512}") });
  const payload = fc
    .record({
      tenant: text,
      key: text,
      holder: text,
      purpose: text,
      tier: text,
      action: text,
      ttlMs: fc.nat(300),
      nonce: fc.constantFrom("0123456789abcdef", "0123456789abcdeff"),
      notBeforeMs: fc.nat(300),
      lengthMs: fc.integer({ min: 1, max: 300 }),
    })
    .map(({ lengthMs, ...rest }) => ({ ...rest, notAfterMs: rest.notBeforeMs + lengthMs }));

  it("are equal exactly when the payloads are", () => {
    fc.assert(
      fc.property(payload, payload, (a, b) => {
        expect(encodeApproval(a).equals(encodeApproval(b))).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
      { numRuns: 1000 },
    );
    fc.assert(
      fc.property(
        payload,
        fc.constantFrom("tenant", "key", "holder", "purpose", "tier", "action"),
        text,
        (a, field, value) => {
          const changed = { ...a, [field]: value };
          expect(encodeApproval(a).equals(encodeApproval(changed))).toBe(a[field as "tenant"] === value);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("do not depend on the order of the fields or on fields that are not signed", () => {
    const reversed = Object.fromEntries(Object.entries(payloadFor(REQUEST)).reverse());
    const bytes = encodeApproval({
      ...(reversed as unknown as ReturnType<typeof payloadFor>),
      extra: 1,
    } as never);
    expect(bytes.equals(encodeApproval(payloadFor(REQUEST)))).toBe(true);
  });

  it.each([
    ["tenant", { tenant: "" }],
    ["key", { key: "db\0main" }],
    ["holder", { holder: "writer\u202e" }],
    ["purpose", { purpose: "x".repeat(257) }],
    ["tier", { tier: " Standard" }],
    ["action", { action: 7 }],
    ["ttlMs", { ttlMs: -1 }],
    ["ttlMs", { ttlMs: 2 ** 53 }],
    ["nonce", { nonce: "short" }],
    ["nonce", { nonce: "0123456789abcde=" }],
    ["notAfterMs", { notAfterMs: NOT_BEFORE_MS }],
  ])("do not exist for a payload with a bad %s: it is named", (field, change) => {
    const bad = { ...payloadFor(REQUEST), ...change } as ReturnType<typeof payloadFor>;
    expect(() => encodeApproval(bad)).toThrow(new RegExp(`^LC_INVALID_REQUEST: ${field} must`));
    expect(() => signApproval(testKey("s1").privateKey, bad, "s1")).toThrow(/LC_INVALID_REQUEST/);
  });

  it("are not signed for a bad signer id, nor with a public key", () => {
    const { privateKey } = testKey("s1");
    expect(() => signApproval(privateKey, payloadFor(REQUEST), "s 1")).toThrow(
      /signerId must not contain white space/,
    );
    expect(() => approvalId(payloadFor(REQUEST), "")).toThrow(/signerId must not be empty/);
  });
});

describe("the approval id", () => {
  it("differs by signer and by every signed field, and not by the signature", () => {
    const ids = [
      approvalId(payloadFor(REQUEST), "s1"),
      approvalId(payloadFor(REQUEST), "s2"),
      approvalId(payloadFor({ ...REQUEST, ttlMs: 1 }), "s1"),
      approvalId(payloadFor(REQUEST, { notAfterMs: NOT_AFTER_MS + 1 }), "s1"),
    ];
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids[0]).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(verify(ONE_SIGNER, [GOOD]).accepted).toEqual([
      { signerId: "s1", approvalId: ids[0], notAfterMs: NOT_AFTER_MS },
    ]);
  });
});
