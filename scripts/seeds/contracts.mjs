// The contracts of the seed documents: their vectors, played through `solehold/seeds` on a clock that is set by hand. What
// comes out is what the code does now; nothing here says what should come out.
import { readFileSync } from "node:fs";
import { ROOT } from "./rows.mjs";

const SECOND_MS = 1_000;

/** By document. `api` is what `solehold/seeds` exports. */
export async function contractsOf(api) {
  return {
    "000": await serviceContract(api),
    "001": await managerContract(api),
    "002": gateContract(api),
    "003": quorumContract(api),
    "004": await writerContract(api),
  };
}

/** Each vector under a name of its own: granted at 100 s, then steps at so many seconds after. */
const SERVICE_VECTORS = [
  ["grant-and-use", "Operation", 60, [["use", 10, "Operation"]]],
  ["expired-use-rejected", "StateWrite", 60, [["use", 100, "StateWrite"]]],
  [
    "renewal-extends-ttl",
    "Operation",
    60,
    [
      ["renew", 50],
      ["use", 100, "Operation"],
    ],
  ],
  [
    "revoked-use-rejected",
    "MigrationHandoff",
    120,
    [
      ["revoke", 10],
      ["use", 20, "MigrationHandoff"],
    ],
  ],
  ["purpose-mismatch", "Operation", 60, [["use", 10, "MigrationHandoff"]]],
  ["renewal-of-expired-rejected", "Operation", 60, [["renew", 60]]],
  [
    "second-revoke-rejected",
    "Operation",
    60,
    [
      ["revoke", 10],
      ["revoke", 20],
    ],
  ],
];

async function serviceContract({ LeaseService, ManualEnv }) {
  const leases = [];
  const decisions = [];
  for (const [name, purpose, ttlSecs, steps] of SERVICE_VECTORS) {
    const env = new ManualEnv({ wallMs: 100 * SECOND_MS });
    const service = new LeaseService({ env });
    const call = { traceId: name };
    const lease = await service.grant("holder-1", purpose, ttlSecs, { name, ...call });
    let last = 0;
    for (const [action, atSecs, used] of steps) {
      await env.advance((atSecs - last) * SECOND_MS);
      last = atSecs;
      await stepOf(service, lease, action, used, call).catch(() => undefined);
    }
    const { revoked, ...fields } = plain(await service.get(lease.leaseId));
    const isOver = env.wallMs() / SECOND_MS >= fields.renewed_at + fields.ttl_secs;
    leases.push({ ...fields, status: revoked ? "revoked" : isOver ? "expired" : "active" });
    for (const { timestamp: _timestamp, ...decision } of plain(await service.decisions()))
      decisions.push(decision);
  }
  const description =
    "Grants at 100 s, each with the steps of one vector, and the decision about every step.";
  return { description, leases, decisions };
}

function stepOf(service, lease, action, purpose, call) {
  if (action === "use") return service.useLease(lease, purpose, call);
  return action === "renew" ? service.renew(lease, call) : service.revoke(lease, call);
}

/** Lease duration 5000, from 1000 on: at which instant, which node, what. */
const MANAGER_STEPS = [
  [1_000, "n1", "acquire"],
  [3_000, "n1", "renew"],
  [5_999, "n2", "acquire"],
  [7_999, "n2", "renew"],
  [8_000, "n1", "renew"],
  [8_000, "n2", "acquire"],
  [9_000, "n1", "release"],
  [9_000, "n2", "release"],
  [9_000, "n1", "acquire"],
];

async function managerContract({ MemoryLeaseManager, ManualEnv }) {
  const env = new ManualEnv({ wallMs: 1_000 });
  const manager = new MemoryLeaseManager({ env, leaseDurationMs: 5_000 });
  const decisions = [];
  for (const [at, node, action] of MANAGER_STEPS) {
    await env.advance(at - env.wallMs());
    const refused = await manager[action](node, "actor-1").then(
      () => null,
      (error) => error,
    );
    const outcome =
      refused === null ? { allowed: true, reason: "ok" } : { allowed: false, reason: refused.kind };
    decisions.push({ at, node, actor: "actor-1", action, ...outcome, ...holderOf(refused) });
  }
  const description = "One actor, lease duration 5000 ms, two nodes: who is allowed what at which instant.";
  return { description, leases: [plain(await manager.getLease("actor-1"))], decisions };
}

function holderOf(refused) {
  return refused?.holder == null ? {} : { holder: refused.holder, expiry: refused.expiry };
}

const NOW = 10_000;
const SELF = { activeLeaseOwnerId: "self", activeLeaseToken: "t-1", activeLeaseExpiresAt: NOW + 1_000 };
const OTHER = { activeLeaseOwnerId: "other", activeLeaseToken: "t-2", activeLeaseExpiresAt: NOW + 1_000 };
const GATE_VECTORS = [
  ["ACQUIRE", "none", null],
  ["ACQUIRE", "live, other", OTHER],
  ["ACQUIRE", "live, self", SELF],
  ["ACQUIRE", "expired, other", { ...OTHER, activeLeaseExpiresAt: NOW }],
  ["RENEW", "none", null],
  ["RENEW", "live, other", OTHER],
  ["RENEW", "live, self, wrong token", { ...SELF, activeLeaseToken: "t-9" }],
  ["RENEW", "live, self, right token", SELF],
  ["RENEW", "expired, self, right token", { ...SELF, activeLeaseExpiresAt: NOW }],
  ["RENEW", "expired, other", { ...OTHER, activeLeaseExpiresAt: NOW }],
  ["RELEASE", "none", null],
  ["RELEASE", "live, other", OTHER],
  ["RELEASE", "live, self, wrong token", { ...SELF, activeLeaseToken: "t-9" }],
  ["RELEASE", "live, self, right token", SELF],
  ["RELEASE", "expired, other", { ...OTHER, activeLeaseExpiresAt: NOW }],
  ["RENEW", "without a token", SELF, { leaseToken: undefined }],
  ["ACQUIRE", "incoherent", { ...SELF, activeLeaseToken: undefined }],
];

function gateContract({ evaluatePolicy, computeDecision }) {
  const decisions = GATE_VECTORS.map(([operation, name, snapshot, more = {}]) => {
    const request = {
      ...{
        tenantId: "acme",
        workOrderId: "wo-1",
        leaseOwnerId: "self",
        operation,
        requestedTtlMs: 5_000,
        now: NOW,
      },
      ...{ leaseToken: "t-1", proposedToken: "t-new", ...more },
    };
    const bundle = evaluatePolicy(request, snapshot);
    const decided = plain(computeDecision(request, snapshot, bundle));
    return { operation, snapshot: name, lease_policy_bundle: plain(bundle), lease_decision_bundle: decided };
  });
  return {
    description: "Owner self with token t-1 at 10000, ttl 5000: the table of decisions.",
    leases: [],
    decisions,
  };
}

function quorumContract({ LeaseCoordinatorService }) {
  const read = (name) => JSON.parse(readFileSync(new URL(`docs/vectors/${name}`, ROOT), "utf8"));
  const { cases } = read("quorum.json");
  const vectors = cases.slice(0, 6).map(({ name, quorum, request, approvals, nowMs }) => {
    const service = new LeaseCoordinatorService({ knownSigners: signersOf({ quorum }) });
    const call = { leaseId: `${request.tenant}/${request.key}`, traceId: name, request, approvals, nowMs };
    const verified = service.verifyQuorum(call);
    const { leaseId, tier, required, received, passed, traceId, timestamp } = verified;
    const failures = verified.failures.map(({ signerId, ...failure }) =>
      signerId === undefined ? failure : { ...failure, signer_id: signerId },
    );
    const signers = approvals.map(({ signerId }) => signerId);
    return {
      name,
      signers,
      lease_id: leaseId,
      tier,
      required,
      received,
      passed,
      failures,
      trace_id: traceId,
      timestamp,
    };
  });
  const interop = new LeaseCoordinatorService({ knownSigners: signersOf(cases[0]), algorithm: "product-v1" });
  const selections = read("coordinator-selection.json")
    .selections.filter(({ algorithm }) => algorithm === "product-v1")
    .slice(0, 8)
    .map(({ leaseId, candidates }) => {
      const weighted = candidates.map(({ nodeId, weight }) => ({ nodeId, weight: BigInt(weight) }));
      const { selected } = interop.selectCoordinator({ leaseId, traceId: leaseId, candidates: weighted });
      const shown = candidates.map(({ nodeId, weight }) => ({ node_id: nodeId, weight: String(weight) }));
      return { lease_id: leaseId, candidates: shown, selected, trace_id: leaseId };
    });
  return {
    description: "Quorums by tier, and selections by the document's weighted hash.",
    vectors,
    selections,
  };
}

function signersOf({ quorum }) {
  return Object.fromEntries(quorum.signers.map(({ signerId, keys: [key] }) => [signerId, key.publicKey]));
}

/** At so many milliseconds: the call. Leases are named by their holder. */
const WRITER_STEPS = [
  [0, "writer-a", "tryAcquire", 1_000],
  [500, "writer-b", "tryAcquire", 1_000],
  [1_000, "writer-b", "tryAcquire", 1_000],
  [1_200, "writer-a", "refresh", 1_000],
  [1_200, "writer-b", "refresh", 1_000],
  [1_300, "writer-a", "tryAcquireForTerm", 1_000, 0n],
  [2_300, "writer-a", "tryAcquireForTerm", 1_000, 7n],
  [2_400, "writer-b", "tryAcquireForTerm", 1_000, 6n],
  [2_400, "writer-a", "refreshForTerm", 1_000, 8n],
  [2_500, "writer-a", "release"],
];

async function writerContract({ ManualEnv, MemoryStore, WriterLeaseStore, toJson }) {
  const env = new ManualEnv({ wallMs: 1_730_000_000_000 });
  const store = new WriterLeaseStore({ store: new MemoryStore({ env }), env });
  const start = env.wallMs();
  const held = new Map();
  const leases = [];
  const decisions = [];
  for (const [at, holder, action, ...more] of WRITER_STEPS) {
    await env.advance(start + at - env.wallMs());
    const isAcquire = action.startsWith("tryAcquire");
    const args = isAcquire ? ["main", holder, ...more] : [held.get(holder), ...more];
    const refused = await store[action](...args).then(
      (lease) => {
        if (lease !== undefined) held.set(holder, lease);
        return null;
      },
      (error) => error,
    );
    const current = await store.current("main");
    decisions.push({ at, holder, action, allowed: refused === null, reason: refused?.kind ?? "ok" });
    leases.push({ at, object: current === null ? null : JSON.parse(toJson(current)) });
  }
  const description = "One database key, two writers: each call, and the object that is published after it.";
  return { description, leases, decisions };
}

/** In the document's own spelling. */
function plain(value) {
  return JSON.parse(
    JSON.stringify(value, (_name, field) => (typeof field === "bigint" ? String(field) : field)),
  );
}
