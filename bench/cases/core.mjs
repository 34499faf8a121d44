// The core alone, without a store: decisions, selections, approvals, audit entries; import and size of the main entry.
import { createHash, generateKeyPairSync, sign, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import {
  createPolicy,
  decide,
  exactly,
  generateSigningKey,
  MemoryAuditTrail,
  Quorum,
  selectCoordinator,
  signApproval,
  verifyQuorum,
} from "solehold/internal";
import { importMs } from "../lib/import-time.mjs";
import { alternating, callsPerSecond } from "../lib/measure.mjs";
import { figure } from "../lib/rows.mjs";
import { median } from "../lib/statistics.mjs";

const ENTRY = createRequire(import.meta.url).resolve("solehold");
const LIBRARY = dirname(dirname(ENTRY));

export const about = "Core: what one processor does without a store";

export async function run({ quick, say }) {
  const options = quick ? { rounds: 3, roundMs: 150 } : { rounds: 7, roundMs: 500 };
  say("decide");
  const decisions = callsPerSecond(decisionLoop(), options);
  say("coordinator");
  const selections = callsPerSecond(selectionLoop(), options);
  say("quorum");
  const [quorums, signatures] = alternating([quorumLoop(), signatureLoop()], options);
  say("audit");
  const [appends, hashes] = alternating([auditLoop(), hashLoop()], options);
  say("import");
  const importing = median(Array.from({ length: quick ? 5 : 11 }, () => importMs(["solehold"])));
  say("size");
  const { gzipped, dependencies } = await entrySize();
  const perProcessor = "counted in processor time, so other work on the machine does not count against it";
  return {
    conditions: [
      perProcessor,
      `a quorum of ${SIGNERS} signers costs ${SIGNERS} Ed25519 verifications of node:crypto: its floor`,
    ],
    rows: [
      figure("core: decide (acquire, renew, use, release)", decisions, "decisions/s", {
        bar: ">= 2,000,000",
        met: decisions >= 2e6,
      }),
      figure("core: selectCoordinator, 5 candidates", selections, "selections/s"),
      figure(`core: verifyQuorum, ${SIGNERS} approvals`, quorums, "quorums/s", { floor: signatures }),
      figure("core: audit append in memory (floor: one SHA-256)", appends, "entries/s", { floor: hashes }),
      figure("core: import of the main entry", importing, "ms", { bar: "< 60", met: importing < 60 }),
      figure("core: main entry, bundled and gzipped", gzipped / 1_000, "kB", {
        bar: "<= 30",
        met: gzipped <= 30_000,
      }),
      figure("core: runtime dependencies of the main entry", dependencies, "packages", {
        bar: "0",
        met: dependencies === 0,
      }),
    ],
  };
}

const SAMPLE_LINE = "x".repeat(400);

/** One lease through its life, over and over: what a busy server asks of the core. */
function decisionLoop() {
  const policy = createPolicy();
  const key = { tenant: "default", name: "orders/4711" };
  const owner = { key, holder: "worker-1", tokenHash: "h".repeat(43) };
  let record = null;
  let nowMs = 1_700_000_000_000;
  const ops = ["acquire", "renew", "use", "release"];
  const commands = {
    acquire: { op: "acquire", ...owner, purpose: "Operation", ttlMs: 30_000, nonce: "n1" },
    renew: { op: "renew", ...owner, ttlMs: 30_000, nonce: "n2" },
    use: { op: "use", ...owner, purpose: "Operation", nonce: "n3" },
    release: { op: "release", ...owner, nonce: "n4" },
  };
  return (index) => {
    nowMs += 1;
    const { effect } = decide(commands[ops[index & 3]], { record, floor: 0n }, exactly(nowMs), policy);
    if (effect.kind === "write") record = effect.record;
  };
}

function selectionLoop() {
  const candidates = Array.from({ length: 5 }, (_, index) => ({
    nodeId: `node-${index}`,
    weight: BigInt(index + 1),
  }));
  return (index) => selectCoordinator({ candidates, leaseId: `lease-${index}`, traceId: "trace" });
}

const SIGNERS = 3;

/** A whole quorum: parsing, rules, windows, ids, and the signatures of all its approvals. */
function quorumLoop() {
  const nowMs = 1_700_000_000_000;
  const request = {
    tenant: "default",
    key: "db/main",
    holder: "worker-1",
    purpose: "Operation",
    tier: "Dangerous",
    action: "acquire",
    ttlMs: 30_000,
    nonce: "0123456789abcdef012345",
  };
  const signers = Array.from({ length: SIGNERS }, (_, index) => ({
    signerId: `signer-${index}`,
    pair: generateSigningKey(),
  }));
  const definition = Quorum.define({
    signers: signers.map(({ signerId, pair }) => ({
      signerId,
      keys: [{ publicKey: pair.publicKey }],
    })),
  });
  const payload = { ...request, notBeforeMs: nowMs - 1_000, notAfterMs: nowMs + 60_000 };
  const approvals = signers.map(({ signerId, pair }) => signApproval(pair.privateKey, payload, signerId));
  const input = {
    quorum: definition.quorum,
    leaseId: "default/db/main",
    request,
    approvals,
    nowMs,
    traceId: "trace",
  };
  return () => {
    if (!verifyQuorum(input).passed) throw new Error("the quorum did not pass");
  };
}

/** As many bare verifications, of as many bytes. */
function signatureLoop() {
  const message = Buffer.alloc(200, 7);
  const signed = Array.from({ length: SIGNERS }, () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    return { publicKey, signature: sign(null, message, privateKey) };
  });
  return () => {
    for (const { publicKey, signature } of signed) verify(null, message, publicKey, signature);
  };
}

function hashLoop() {
  return () => createHash("sha256").update(SAMPLE_LINE).digest("hex");
}

function auditLoop() {
  const trail = new MemoryAuditTrail({ capacity: 10_000 });
  return (index) =>
    trail.append({
      at: 1_700_000_000_000 + index,
      tenant: "default",
      key: "orders/4711",
      leaseId: `default/orders/4711@${index}`,
      action: "grant",
      allowed: true,
      reason: "OK_DECISION_COMPUTE",
      reasonCode: 0x4c530002,
      holder: "worker-1",
      fence: String(index),
      purpose: "Operation",
      traceId: "0123456789abcdef",
      outcome: "applied",
    });
}

/** What a program that imports the main entry carries; stores and their clients load when they are asked for. */
async function entrySize() {
  const result = await build({
    entryPoints: [ENTRY],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "node",
    write: false,
    plugins: [{ name: "leave-dynamic-imports", setup: leaveDynamicImports }],
  });
  const [bundle] = result.outputFiles;
  const manifest = JSON.parse(readFileSync(join(LIBRARY, "package.json"), "utf8"));
  return {
    gzipped: gzipSync(bundle.text).length,
    dependencies: Object.keys(manifest.dependencies ?? {}).length,
  };
}

function leaveDynamicImports({ onResolve }) {
  onResolve({ filter: /.*/ }, ({ kind, path }) =>
    kind === "dynamic-import" ? { path, external: true } : undefined,
  );
}
