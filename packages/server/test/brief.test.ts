import fc from "fast-check";
import type { AppliedOutcome, LeaseOp } from "solehold";
import type { ServiceReply } from "solehold/internal";
import { type BriefableBody, briefRequest, outcomeOf } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { policies, records } from "../../solehold/test/core/arbitraries.ts";
import { COMMAND_SCHEMAS } from "../src/commands/command-handler.ts";
import { briefAnswer } from "../src/protocol/brief.ts";
import { commandAnswer } from "../src/protocol/response-codec.ts";
import { inFull } from "../src/stream/messages.ts";

const instants = fc.integer({ min: 0, max: 2 ** 46 });
const durations = fc.integer({ min: 0, max: 2 ** 40 });

function replyWith(
  decision: AppliedOutcome["decision"],
  times: { at: number; validForMs: number },
): ServiceReply {
  const { lease } = decision;
  const believedFrom = { monotonicMs: 0, wallMs: 0 };
  const { at: storeTimeMs, validForMs } = times;
  return {
    outcome: { kind: "applied", decision, token: "secret", believedFrom, validForMs, storeTimeMs },
    entry: {
      leaseId: `${lease.key.tenant}/${lease.key.name}`,
      action: "grant",
      allowed: true,
      reason: decision.reason,
      code: "LS_OK",
      traceId: "0".repeat(32),
      timestampMs: storeTimeMs,
      holder: lease.holder,
      fence: null,
    },
    quorum: null,
  };
}

/** As it is after its way through a socket. */
function received(json: string): unknown {
  return JSON.parse(json);
}

const BRIEF_OPS = ["acquire", "renew", "release"] as const;
const BRIEF_BODIES = {
  acquire: { tenant: "t", name: "n", holder: "h", token: "k", ttlMs: 5, purpose: "Operation", waitMs: 9 },
  renew: { tenant: "t", name: "n", holder: "h", token: "k", ttlMs: 5 },
  release: { tenant: "t", name: "n", holder: "h", token: "k" },
} as const;

describe("brief requests", () => {
  it("are read as what the full request says", () => {
    let briefly = 0;
    const text = fc.string({ unit: "grapheme" });
    const field = fc.oneof({ weight: 9, arbitrary: text }, fc.constant(undefined), fc.integer());
    const count = fc.oneof({ weight: 5, arbitrary: fc.integer() }, fc.constant(undefined), text);
    const seldom = fc.option(text, { nil: undefined, freq: 9 }).map((value) => (value === "x" ? "y" : value));
    const bodies = fc.record({
      ...{ tenant: field, name: field, holder: field, token: field },
      ...{ ttlMs: count, purpose: field, waitMs: count },
      ...{ generation: seldom, term: seldom, note: seldom, idempotencyKey: seldom, approval: seldom },
    });
    const knownTo = (op: (typeof BRIEF_OPS)[number], body: BriefableBody): BriefableBody =>
      Object.fromEntries(
        Object.entries(body).filter(([name, value]) => {
          const isRare = ["generation", "term", "note", "idempotencyKey", "approval"].includes(name);
          return name in COMMAND_SCHEMAS[op].properties && !(isRare && value === null);
        }),
      );
    fc.assert(
      fc.property(
        fc.integer(),
        fc.constantFrom(...BRIEF_OPS),
        bodies,
        fc.boolean(),
        (id, op, any, isPlain) => {
          const plain = { ...BRIEF_BODIES[op], name: any.name ?? "n", token: any.token ?? "k" };
          const body = isPlain ? plain : knownTo(op, any);
          const brief = briefRequest(id, op, body);
          if (brief === null) return;
          briefly += 1;
          const full = received(JSON.stringify({ id, op, ...body })) as object;
          const read = inFull(received(JSON.stringify(brief)));
          // Not to wait is what it means not to say how long.
          expect(read).toEqual(op === "acquire" ? { waitMs: 0, ...full } : full);
        },
      ),
      { numRuns: 2_000 },
    );
    expect(briefly).toBeGreaterThan(500);
  });

  it.each(BRIEF_OPS)("are not made of a %s that has a field which they have no place for", (op) => {
    const body: BriefableBody = BRIEF_BODIES[op];
    expect(briefRequest(1, op, body)).not.toBeNull();
    const others = Object.keys(COMMAND_SCHEMAS[op].properties).filter((name) => !(name in body));
    expect(others.length).toBeGreaterThan(1);
    for (const name of others) expect(briefRequest(1, op, { ...body, [name]: "1" })).toBeNull();
    for (const name of Object.keys(body)) {
      if (name !== "waitMs") expect(briefRequest(1, op, { ...body, [name]: undefined })).toBeNull();
    }
  });

  it("that have another length or operation are no requests", () => {
    for (const list of [[], [1], [1, "release", "t", "n", "h"], [1, "use", "t", "n", "h", "k"], [[1]]])
      expect(inFull(list)).toBe(list);
    expect(inFull([1, "release", "t", "n", "h", "k", 5])).toBeInstanceOf(Array);
  });
});

describe("brief answers", () => {
  it("tell the SDK exactly what the full answer tells it", () => {
    let briefly = 0;
    fc.assert(
      fc.property(
        records,
        policies,
        fc.record({ at: instants, validForMs: durations, waitedMs: durations }),
        fc.record({ resumeFromLedgerRequired: fc.boolean(), replayed: fc.boolean() }),
        fc.constantFrom<LeaseOp>("acquire", "renew", "release"),
        fc.boolean(),
        (record, policy, times, flags, op, isPlain) => {
          const plain = {
            note: "",
            handoff: null,
            breakAtMs: null,
            term: 0n,
            generation: record.generation & 0xffffn,
          };
          const lease = isPlain ? { ...record, ...plain } : record;
          const reply = replyWith({ kind: "granted", reason: "OK_DECISION_COMPUTE", lease, ...flags }, times);
          const question = { tenant: lease.key.tenant, holder: lease.holder, token: "secret" };
          const brief = briefAnswer(op, reply, question, times.waitedMs);
          if (isPlain) expect(brief).not.toBeNull();
          if (brief === null) return;
          briefly += 1;
          const full = JSON.stringify(commandAnswer(op, reply, policy, times.waitedMs).body);
          const reading = { monotonicMs: 5, wallMs: 7 };
          const sent = {
            reading,
            received: () => ({ monotonicMs: 2 ** 41, wallMs: 2 ** 41 }),
            driftRatio: 0.01,
          };
          const outcomes = [full, `[1,${brief}`].map((text) =>
            outcomeOf({ status: 200, body: received(text) }, "secret", sent, lease),
          );
          expect(outcomes[0]?.kind).toBe("applied");
          expect(outcomes[1]).toEqual(outcomes[0]);
        },
      ),
      { numRuns: 500 },
    );
    expect(briefly).toBeGreaterThan(100);
  });

  it("are not given where the client could not fill in what is left out", () => {
    const key = { tenant: "t", name: "n" };
    const [sample] = fc.sample(records, { numRuns: 1, seed: 1 });
    if (sample === undefined) throw new Error("no record");
    const lease = { ...sample, key, note: "", handoff: null, breakAtMs: null, term: 0n, generation: 1n };
    const answer = (op: LeaseOp, changes: object, question: object): string | null => {
      const decision = {
        kind: "granted",
        reason: "OK_DECISION_COMPUTE",
        lease: { ...lease, ...changes },
      } as const;
      const flags = { resumeFromLedgerRequired: false, replayed: false };
      const asked = { tenant: "t", holder: lease.holder, token: "secret", ...question };
      return briefAnswer(op, replyWith({ ...decision, ...flags }, { at: 9, validForMs: 1 }), asked, 0);
    };
    expect(answer("acquire", {}, {})).toMatch(/^9,1,0,0,1,/);
    expect(answer("handoff", {}, {})).toBeNull();
    expect(answer("acquire", {}, { tenant: undefined })).toBeNull();
    expect(answer("acquire", {}, { holder: "another" })).toBeNull();
    expect(answer("acquire", {}, { token: undefined })).toBeNull();
    expect(answer("renew", { note: "people" }, {})).toBeNull();
    expect(answer("renew", { breakAtMs: 3 }, {})).toBeNull();
    expect(answer("renew", { handoff: { successor: "x", deadlineMs: 3 } }, {})).toBeNull();
    expect(answer("renew", { generation: 2n ** 60n }, {})).toBeNull();
  });

  it("that are damaged are an unknown outcome, never a wrong lease", () => {
    const asked = { key: { tenant: "t", name: "n" }, holder: "h" };
    const reading = { monotonicMs: 5, wallMs: 7 };
    const sent = { reading, received: () => reading, driftRatio: 0.01 };
    const good = [1, 9, 30, 0, 0, 1, "Operation", "held", 30, 0, 0, 30, null, 0, 0];
    const outcome = (body: unknown) => outcomeOf({ status: 200, body }, "secret", sent, asked);
    expect(outcome(good)).toMatchObject({ kind: "applied", decision: { lease: { expiresAtMs: 39 } } });
    for (let index = 1; index < good.length; index += 1) {
      const bad = good.map((value, at) => (at === index ? "?" : value));
      expect(outcome(bad)).toMatchObject({ kind: "unsettled", outcome: "unknown" });
      expect(outcome(good.slice(0, index))).toMatchObject({ kind: "unsettled", outcome: "unknown" });
    }
  });
});
