/**
 * The vectors for clients in other languages: what a holder may believe, and what the answers of a server mean. Part of
 * what scripts/approval-vectors.mjs writes. Everything is fixed: no clock, no randomness.
 */
const NOW_MS = 1_800_000_000_000;
const TOKEN = "test-token-of-the-vectors";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const DRIFT = { driftRatio: 0.01, tickMs: 2 };

const RECORD = {
  key: { tenant: "acme", name: "db/main" },
  holder: "writer-a",
  purpose: "Operation",
  tokenHash: "",
  term: 0n,
  generation: 1_794_998_252_147_000n,
  ttlMs: 15_000,
  grantedAtMs: NOW_MS,
  renewedAtMs: NOW_MS,
  expiresAtMs: NOW_MS + 15_000,
  endedAtMs: null,
  state: "held",
  renewals: 0,
  resumeRequired: false,
  breakAtMs: null,
  minHoldUntilMs: null,
  lockDelayMs: 0,
  handoff: null,
  reservation: null,
  ticket: "",
  nonce: "",
  idempotency: null,
  note: "",
  metadata: {},
};

/** What a holder may believe. `api` is what `solehold/internal` exports. */
export function validityVectors(api) {
  const reading = (monotonicMs, wallMs) => ({ monotonicMs, wallMs });
  const margins = [
    [15_000, DRIFT],
    [1_000, DRIFT],
    [1, DRIFT],
    [12_345, { driftRatio: 0.003, tickMs: 1 }],
    [86_400_000, { driftRatio: 0, tickMs: 20 }],
    [30_000, { driftRatio: 0.49, tickMs: 2 }],
  ].map(([ttlMs, drift]) => ({ ttlMs, drift, marginMs: api.marginMs(ttlMs, drift) }));

  const sent = reading(1_000, NOW_MS);
  const beliefs = [
    ["answered at once", { sent, received: reading(1_004, NOW_MS + 4), waitedMs: 0 }],
    ["a late answer: the belief counts from before", { sent, received: reading(9_000, NOW_MS + 8_000) }],
    ["over when the answer arrives", { sent, received: reading(16_000, NOW_MS + 15_000) }],
    ["waited in the queue", { sent, received: reading(8_010, NOW_MS + 7_010), waitedMs: 7_000 }],
    ["slept while it waited", { sent, received: reading(3_010, NOW_MS + 7_010), waitedMs: 7_000 }],
    [
      "says that it waited longer than it took",
      { sent, received: reading(2_000, NOW_MS + 1_000), waitedMs: 9_000 },
    ],
    [
      "wall clock set back while it waited",
      { sent, received: reading(8_010, NOW_MS - 60_000), waitedMs: 7_000 },
    ],
    [
      "another bound of drift",
      { sent, received: reading(1_001, NOW_MS + 1), drift: { driftRatio: 0.1, tickMs: 5 } },
    ],
  ].map(([name, given]) =>
    beliefCase(api, name, { waitedMs: 0, validForMs: 15_000, drift: DRIFT, ...given }),
  );

  const earlier = { monotonicEndMs: 10_000, wallEndMs: NOW_MS + 10_000 };
  const later = { monotonicEndMs: 14_000, wallEndMs: NOW_MS + 13_000 };
  const renewals = [
    [earlier, later],
    [later, earlier],
  ].map(([before, renewed]) => ({ before, renewed, believed: api.laterValidity(before, renewed) }));
  return { description: "What a holder may believe. See README.md.", margins, beliefs, renewals };
}

function beliefCase(api, name, { sent, received, waitedMs, validForMs, drift }) {
  const body = grantBody(api, { waitedMs, validForMs });
  const from = { reading: sent, received: () => received, driftRatio: drift.driftRatio };
  const { believedFrom } = api.decodeOutcome({ status: 200, body }, TOKEN, from);
  const validity = api.validityFrom(believedFrom, validForMs, drift);
  const { monotonicEndMs, wallEndMs } = validity;
  const instants = [
    received,
    { monotonicMs: monotonicEndMs - 1, wallMs: wallEndMs - 1 },
    { monotonicMs: monotonicEndMs, wallMs: wallEndMs - 1 },
    { monotonicMs: monotonicEndMs - 1, wallMs: wallEndMs },
    { monotonicMs: monotonicEndMs - 1, wallMs: wallEndMs - 60_000 },
  ].map((now) => ({
    now,
    remainingMs: api.remainingValidityMs(validity, now),
    valid: api.isStillValid(validity, now),
  }));
  return { name, sent, received, waitedMs, validForMs, drift, validity, instants };
}

/** What the answers of a server mean to a client. */
export function wireVectors(api) {
  const encoded = (op, outcome) => api.encodeOutcome(op, outcome, contextOf(api));
  const denial = (reason, heldBy, heldUntilMs) => ({
    kind: "refused",
    decision: {
      ...{ kind: "denied", reason, heldBy, heldUntilMs },
      fence: reason === "LEASE_NOT_FOUND" ? null : api.recordFence(RECORD),
    },
    storeTimeMs: NOW_MS,
  });
  const reasons = Object.keys(api.REASONS).filter((reason) => {
    const { status, serviceCode } = api.REASONS[reason];
    return status < 500 && serviceCode !== "LS_OK" && serviceCode !== "LS_INVALID";
  });
  const wrong = {
    kind: "refused",
    reason: "INPUT_SCHEMA_INVALID",
    field: "ttlMs",
    message: "must be an integer",
  };
  const failed = (kind, outcome) => {
    const cause = new api.StoreError(kind, "the store failed", { outcome });
    return { kind: "unsettled", outcome, cause };
  };
  const grant = { status: 200, body: grantBody(api, { waitedMs: 0, validForMs: 15_000 }) };
  const answers = [
    ["acquire: granted", "acquire", grant],
    [
      "acquire: an answer that was given before",
      "acquire",
      { ...grant, body: { ...grant.body, replayed: true } },
    ],
    ["renew: granted", "renew", encoded("renew", grantOutcome(15_000))],
    ...reasons.flatMap((reason) => [
      [`acquire: ${reason}`, "acquire", encoded("acquire", denial(reason, null, null))],
      [`renew: ${reason}`, "renew", encoded("renew", denial(reason, "writer-b", NOW_MS + 4_000))],
    ]),
    [
      "acquire: FENCE_WENT_BACK with a date",
      "acquire",
      encoded("acquire", denial("FENCE_WENT_BACK", null, NOW_MS + 9)),
    ],
    [
      "acquire: a wrong field",
      "acquire",
      encoded("acquire", { kind: "refused", decision: wrong, storeTimeMs: 0 }),
    ],
    ["acquire: nothing was done", "acquire", encoded("acquire", failed("unreachable", "not-applied"))],
    ["acquire: nobody knows", "acquire", encoded("acquire", failed("timeout", "unknown"))],
    ["renew: the store lost data", "renew", encoded("renew", failed("data-loss", "unknown"))],
    [
      "no API key",
      "acquire",
      { status: 401, body: { reason: "UNAUTHENTICATED", detail: "a key is missing" } },
    ],
    ["not allowed", "acquire", { status: 403, body: { reason: "FORBIDDEN", detail: "not for this tenant" } }],
    [
      "too many requests",
      "acquire",
      { status: 429, body: { reason: "TOO_MANY_REQUESTS", detail: "slower" } },
    ],
    [
      "a reason that nobody knows",
      "acquire",
      { status: 409, body: { reason: "MOON_PHASE", detail: "wait" } },
    ],
    ["a proxy's own page", "acquire", { status: 502, body: null }],
    ["a grant that cannot be read", "acquire", { status: 200, body: { outcome: "applied" } }],
  ].map(([name, op, answer]) => ({ name, op, ...answer, expected: meaningOf(api, answer, op) }));
  return { description: "What the answers of a server mean. See README.md.", answers };
}

/** As another language would say it. */
function meaningOf(api, answer, op) {
  const reading = { monotonicMs: 0, wallMs: NOW_MS };
  const outcome = api.decodeOutcome(answer, TOKEN, { reading, received: () => reading, driftRatio: 0 });
  if (outcome.kind === "applied") {
    const { token, decision, validForMs } = outcome;
    const fence = api.recordFence(decision.lease).toString();
    return { kind: "applied", token, fence, validForMs, replayed: decision.replayed };
  }
  if (outcome.kind === "unsettled") {
    return {
      kind: "unsettled",
      outcome: outcome.outcome,
      retry: outcome.cause.kind !== "auth",
      ...lossOf(op, outcome),
    };
  }
  const { decision } = outcome;
  if (decision.kind === "refused")
    return { kind: "refused", field: decision.field, message: decision.message };
  const { reason, heldBy } = decision;
  if (op === "acquire") return { kind: "denied", reason, heldBy, worthWaiting: api.isWorthWaiting(outcome) };
  return { kind: "denied", reason, heldBy, ...lossOf(op, outcome) };
}

/** Whether the holder must stop at once. A lease that an operator asked for is valid until its end. */
function lossOf(op, outcome) {
  if (op !== "renew") return {};
  if (outcome.kind === "unsettled") return { lost: outcome.cause.kind === "data-loss" };
  return { lost: outcome.decision.reason !== "LEASE_BREAKING" };
}

function grantOutcome(validForMs) {
  const decision = {
    kind: "granted",
    reason: "OK_DECISION_COMPUTE",
    lease: RECORD,
    resumeFromLedgerRequired: false,
    replayed: false,
  };
  const believedFrom = { monotonicMs: 0, wallMs: 0 };
  return { kind: "applied", decision, token: TOKEN, believedFrom, validForMs, storeTimeMs: NOW_MS };
}

function grantBody(api, { waitedMs, validForMs }) {
  const context = { ...contextOf(api), waitedMs };
  return api.encodeOutcome("acquire", grantOutcome(validForMs), context).body;
}

function contextOf(api) {
  return { key: RECORD.key, policy: api.createPolicy({}), traceId: TRACE, waitedMs: 0 };
}
