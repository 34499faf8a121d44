/** What one side encodes, the other decodes to the same: leases, outcomes, requests, events and stream messages. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ClockReading,
  createPolicy,
  type LeaseOp,
  type LeaseRecord,
  NO_TOKEN_HASH,
  PURPOSES,
  REASONS,
  type Reason,
} from "../../src/core/index.ts";
import { type CommandOutcome, type LeaseRequest, viewOf } from "../../src/executor/index.ts";
import { StoreError, type StoreEvent } from "../../src/store/index.ts";
import {
  bodyOfMessage,
  type CommandBody,
  decodeLease,
  decodeOutcome,
  decodeRequest,
  decodeWatchEvent,
  encodeLease,
  encodeOperation,
  encodeOutcome,
  encodeRequest,
  encodeWatchEvent,
  joinMessages,
  parseMessages,
  readEnvelope,
  type Sent,
  SseParser,
} from "../../src/wire/index.ts";
import { holders, instants, nonsense, records, ttls, u64s } from "../core/arbitraries.ts";

const OPS = ["acquire", "renew", "release", "use", "resume", "handoff", "revoke", "break"] as const;
const DENIALS = (Object.keys(REASONS) as Reason[]).filter(
  (reason) => REASONS[reason].status >= 400 && REASONS[reason].status < 500,
);
const POLICY = createPolicy({ graceMs: 100 });
const READING: ClockReading = { monotonicMs: 1_000, wallMs: 50_000 };
const SENT: Sent = { reading: READING, received: () => READING, driftRatio: 0 };
const TOKEN = "the-token-of-this-grant";
const TRACE = "0123456789abcdef0123456789abcdef";

const purposes = fc.constantFrom(...PURPOSES);
const ops = fc.constantFrom(...OPS);

const applied: fc.Arbitrary<CommandOutcome> = fc
  .record({
    lease: records,
    resumeFromLedgerRequired: fc.boolean(),
    replayed: fc.boolean(),
    validForMs: fc.nat(),
    storeTimeMs: instants,
  })
  .map(({ validForMs, storeTimeMs, ...decision }) => ({
    kind: "applied",
    decision: { kind: "granted", reason: "OK_DECISION_COMPUTE", ...decision },
    token: decision.lease.state === "released" ? "" : TOKEN,
    believedFrom: READING,
    validForMs,
    storeTimeMs,
  }));

const denied: fc.Arbitrary<CommandOutcome> = fc
  .record({
    reason: fc.constantFrom(...DENIALS),
    heldBy: fc.option(holders),
    heldUntilMs: fc.option(instants),
    fence: fc.option(fc.bigInt({ min: 1n, max: 2n ** 128n - 1n })),
    mismatch: fc.option(fc.record({ expected: purposes, actual: purposes }), { nil: undefined }),
    storeTimeMs: instants,
  })
  .map(({ storeTimeMs, mismatch, ...decision }) => ({
    kind: "refused",
    decision: { kind: "denied", ...decision, ...(mismatch === undefined ? {} : { mismatch }) },
    storeTimeMs,
  }));

const refused: fc.Arbitrary<CommandOutcome> = fc
  .record({
    reason: fc.constantFrom<Reason>(...DENIALS, "INTERNAL_PIPELINE_ERROR"),
    field: fc.constantFrom("ttlMs", "key.name", "key.tenant", "idempotencyKey", "token", "input"),
    message: fc.string({ minLength: 1 }),
  })
  .map((decision) => ({ kind: "refused", decision: { kind: "refused", ...decision }, storeTimeMs: 0 }));

const unsettled: fc.Arbitrary<CommandOutcome> = fc
  .tuple(
    fc.constantFrom("unknown", "not-applied"),
    fc.constantFrom("unreachable", "timeout", "full", "data-loss"),
  )
  .map(([outcome, kind]) => ({
    kind: "unsettled",
    outcome,
    cause: new StoreError(kind, "host 10.0.0.1 is down", { outcome }),
  }));

const outcomes = fc.oneof(applied, denied, refused, unsettled);

/** Over the wire and back. */
function travelled<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value));
}

/** A record without what never travels. */
function seenByOthers(record: LeaseRecord): LeaseRecord {
  return { ...record, tokenHash: NO_TOKEN_HASH, ticket: "", nonce: "remote", idempotency: null };
}

/** What a client can know of the outcome. */
function known(outcome: CommandOutcome): unknown {
  if (outcome.kind === "applied")
    return { ...outcome, decision: { ...outcome.decision, lease: seenByOthers(outcome.decision.lease) } };
  if (outcome.kind === "refused") return outcome;
  const kind = outcome.cause.kind === "data-loss" ? "data-loss" : "unreachable";
  return { kind: "unsettled", outcome: outcome.outcome, cause: expect.objectContaining({ kind }) };
}

function answerTo(op: LeaseOp, outcome: CommandOutcome, waitedMs = 0) {
  return travelled(
    encodeOutcome(op, outcome, {
      key: { tenant: "t", name: "a@1" },
      policy: POLICY,
      traceId: TRACE,
      waitedMs,
    }),
  );
}

describe("a lease", () => {
  it("is decoded as it was encoded", () => {
    fc.assert(
      fc.property(records, instants, (record, nowMs) => {
        const view = viewOf(record, nowMs, POLICY);
        expect(decodeLease(travelled(encodeLease(view)))).toEqual(view);
      }),
    );
  });
});

describe("an outcome", () => {
  it("is decoded as it was encoded, but for what must not travel", () => {
    fc.assert(
      fc.property(ops, outcomes, (op, outcome) => {
        expect(decodeOutcome(answerTo(op, outcome), TOKEN, SENT)).toEqual(known(outcome));
      }),
      { numRuns: 2_000 },
    );
  });

  it("brings its token in the answer to an acquire and nowhere else", () => {
    fc.assert(
      fc.property(ops, outcomes, (op, outcome) => {
        const says = JSON.stringify(answerTo(op, outcome)).includes(TOKEN);
        expect(says).toBe(op === "acquire" && outcome.kind === "applied" && outcome.token !== "");
      }),
    );
  });

  it("never tells why a store failed beyond the kind: messages name hosts", () => {
    fc.assert(
      fc.property(ops, unsettled, (op, outcome) => {
        expect(JSON.stringify(answerTo(op, outcome))).not.toContain("10.0.0.1");
      }),
    );
  });

  it("never has a success as the reason of a failure", () => {
    fc.assert(
      fc.property(ops, fc.oneof(denied, refused, unsettled), (op, outcome) => {
        const { status, body } = answerTo(op, outcome);
        expect(status).toBeGreaterThanOrEqual(400);
        expect(body.reason).not.toMatch(/^OK_/);
        expect(body.code).not.toBe("LS_OK");
      }),
    );
  });

  it("that cannot be read is unknown, whatever the server sent", () => {
    fc.assert(
      fc.property(fc.constantFrom(200, 400, 409, 500, 503), nonsense, (status, body) => {
        const outcome = decodeOutcome({ status, body }, TOKEN, SENT);
        if (outcome.kind === "applied") throw new Error("believed nonsense");
        if (status === 200) expect(outcome).toMatchObject({ kind: "unsettled", outcome: "unknown" });
      }),
    );
  });

  it("counts the belief from before sending, plus the time in the queue slowed by drift", () => {
    const outcome = fc.sample(applied, 1)[0] as CommandOutcome;
    const received = { monotonicMs: 9_000, wallMs: 58_000 };
    const sent = { reading: READING, received: () => received, driftRatio: 0.25 };
    const decoded = decodeOutcome(answerTo("acquire", outcome, 5_000), TOKEN, sent);
    expect(decoded).toMatchObject({ believedFrom: { monotonicMs: 5_000, wallMs: 54_000 } });
  });
});

describe("a request", () => {
  const key = { tenant: "default", name: "job/7" };
  const requests = fc.record(
    {
      op: ops,
      key: fc.constant(key),
      holder: holders,
      ttlMs: ttls,
      generation: u64s,
      term: u64s,
      note: fc.string(),
      idempotencyKey: fc.string(),
    },
    { requiredKeys: ["op", "key", "holder"] },
  ) as unknown as fc.Arbitrary<LeaseRequest>;

  it("is decoded as it was encoded, with the token that was sent, and without the client's time limit", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const body = travelled(encodeRequest({ ...request, timeoutMs: 5 }, TOKEN)) as unknown as CommandBody;
        expect(decodeRequest(request.op, key, body)).toEqual({ ...request, token: TOKEN });
      }),
    );
  });
});

describe("a watch event", () => {
  /** As a client hears it that reads the text in pieces. */
  function received(text: string, cut: number): readonly (StoreEvent | null)[] {
    const events: (StoreEvent | null)[] = [];
    const parser = new SseParser((event) => events.push(decodeWatchEvent(event)));
    for (let start = 0; start < text.length; start += cut) parser.push(text.slice(start, start + cut));
    return events;
  }

  it("shows the record, however the text was cut", () => {
    fc.assert(
      fc.property(records, instants, fc.integer({ min: 1, max: 64 }), (record, nowMs, cut) => {
        const { key } = record;
        const lease = encodeLease(viewOf(record, nowMs, POLICY));
        const text = encodeWatchEvent({ kind: "changed", token: "epoch.7", ...key, lease });
        const stored = { kind: "found", record: seenByOthers(record), version: "" };
        expect(received(text, cut)).toEqual([{ kind: "changed", key, stored }]);
      }),
    );
  });

  it("of a deleted record, of one that cannot be read, and of a gap says so", () => {
    const key = { tenant: "t", name: "n" };
    const text = [
      encodeWatchEvent({ kind: "deleted", token: "e.1", ...key }),
      encodeWatchEvent({ kind: "changed", token: "e.2", ...key }),
      encodeWatchEvent({ kind: "reset", token: "e.3" }),
    ].join("");
    expect(received(text, 7)).toEqual([
      { kind: "changed", key, stored: expect.objectContaining({ kind: "absent" }) },
      { kind: "changed", key, stored: null },
      { kind: "reset" },
    ]);
  });
});

describe("a message of the stream", () => {
  it("has every operation with its id, its name and its body", () => {
    const operations = fc.array(
      fc.tuple(fc.integer(), ops, fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue())),
    );
    fc.assert(
      fc.property(operations, (sent) => {
        const clean = sent.map(([id, op, body]) => [id, op, bodyOfMessage(travelled(body))] as const);
        const text = joinMessages(clean.map(([id, op, body]) => encodeOperation(id, op, body)));
        const read = (parseMessages(text) ?? []).map(readEnvelope);
        expect(
          read.map((reading) => reading.ok && [reading.id, reading.op, bodyOfMessage(reading.message)]),
        ).toEqual(clean);
      }),
    );
  });
});
