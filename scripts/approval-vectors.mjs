/**
 * Writes docs/vectors/*.json: inputs and expected answers of coordinator selection, approvals, quorums, and of clients, for
 * implementations in other languages. `--check` compares instead of writing, and fails on a difference.
 *
 * Needs the build (npm run build). The test of the vectors calls `buildVectors` with the sources instead, so
 * committed vectors cannot drift from the code. Everything is fixed: no clock, no randomness.
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { validityVectors, wireVectors } from "./holder-vectors.mjs";

const FOLDER = new URL("../docs/vectors/", import.meta.url);

const NOW_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const MAX_WEIGHT = 2n ** 64n - 1n;
const LINE_WIDTH = 110;
const SEED_PREFIX = "solehold test signer ";

const REQUEST = {
  tenant: "acme",
  key: "db/main",
  holder: "writer-a",
  purpose: "MigrationHandoff",
  tier: "Dangerous",
  action: "acquire",
  ttlMs: 15_000,
  nonce: "bm9uY2Utb2YtcmVxdWVzdA",
};
const WINDOW = { notBeforeMs: NOW_MS - MINUTE_MS, notAfterMs: NOW_MS + MINUTE_MS };

/** File name -> content. `api` is what `solehold/internal` exports. */
export function buildVectors(api) {
  return {
    "coordinator-selection.json": asText(selectionVectors(api)),
    "approvals.json": asText(approvalVectors(api)),
    "quorum.json": asText(quorumVectors(api)),
    "validity.json": asText(validityVectors(api)),
    "wire.json": asText(wireVectors(api)),
  };
}

function selectionVectors({ claimsOn, rendezvousCost, rankCoordinators, SELECTION_ALGORITHMS }) {
  const published = { "node-a": 10n, "node-b": 5n, "node-c": 8n };
  const wide = { "node-low": 1n, "node-max": MAX_WEIGHT, "node-mid": 2n ** 32n - 1n };
  const sets = [
    ["lease-1", published],
    ["lease-2", published],
    ["lease-order", published],
    ["lease-fuzz-baseline", published],
    ["lease-1", { "node-a": 1n, "node-b": 1n, "node-c": 1n }],
    ["lease-wrap", { "node-a": 2n, "node-b": 1n }],
    ["l1", { n1: 10n, n2: 5n, n3: 8n }],
    ["lease-fuzz-max-weight", wide],
    ["acme/reports/nightly run", { "node-é": 3n, "node-\u{1f512}": 3n, "node-\uff5e": 3n, "node-off": 0n }],
    ["x".repeat(1024), { ["n".repeat(256)]: MAX_WEIGHT, n: MAX_WEIGHT - 1n }],
  ];
  for (let lease = 0; lease < 40; lease += 1) {
    const nodes = Array.from({ length: 2 + (lease % 7) }, (_, node) => [
      `replica-${node}`,
      BigInt(1 + ((lease * 7 + node * 13) % 29)),
    ]);
    sets.push([`acme/lease-${lease}`, Object.fromEntries(nodes)]);
  }
  const selections = SELECTION_ALGORITHMS.flatMap((algorithm) =>
    sets.map(([leaseId, weights]) => {
      const candidates = Object.entries(weights).map(([nodeId, weight]) => ({ nodeId, weight }));
      const ranking = rankCoordinators({ candidates, leaseId, traceId: "vectors", algorithm });
      if (!ranking.ok) throw new Error(ranking.message);
      return {
        algorithm,
        leaseId,
        candidates: candidates.map(({ nodeId, weight }) => ({ nodeId, weight: String(weight) })),
        selected: ranking.ranked[0],
        ranked: ranking.ranked,
      };
    }),
  );
  const claims = SELECTION_ALGORITHMS.flatMap((algorithm) =>
    ["node-a", "node-b", "node-c", "node-é", "node-\u{1f512}"].map((nodeId) => ({
      algorithm,
      leaseId: "lease-1",
      nodeId,
      claim: String(claimsOn("lease-1", algorithm, 256)(nodeId, 1n).claim),
    })),
  );
  const hashes = [
    0n,
    1n,
    2n,
    3n,
    2n ** 31n,
    2n ** 32n - 1n,
    2n ** 32n,
    2n ** 52n + 1n,
    2n ** 63n - 1n,
    2n ** 63n,
    MAX_WEIGHT,
  ];
  for (let round = 0; round < 40; round += 1) hashes.push(digest(`logarithm ${round}`).readBigUInt64LE());
  const costs = hashes.map((hash) => ({
    hash: String(hash),
    cost: String(rendezvousCost(Number(hash >> 32n), Number(hash & 0xffff_ffffn))),
  }));
  return {
    description: "Coordinator selection. See README.md. Weights, hashes, claims and costs are decimal texts.",
    costs,
    claims,
    selections,
  };
}

function approvalVectors(api) {
  const payloads = [
    { ...REQUEST, ...WINDOW },
    { ...REQUEST, action: "revoke", ttlMs: 0, ...WINDOW },
    { ...REQUEST, tenant: "acm", key: "edb/main", ...WINDOW },
    { ...REQUEST, key: "rapport/été \u{1f512}", holder: "写入者", tier: "Standard", ...WINDOW },
    { ...REQUEST, ttlMs: Number.MAX_SAFE_INTEGER, nonce: "0123456789abcdef", notBeforeMs: 0, notAfterMs: 1 },
    { ...REQUEST, key: "k".repeat(1024), nonce: "n".repeat(128), notBeforeMs: 0, notAfterMs: 2_678_400_000 },
  ];
  const signers = ["s1", "s2", "s3"].map((signerId) => {
    const seed = seedOf(signerId);
    return {
      signerId,
      seedText: SEED_PREFIX + signerId,
      seedHex: seed.toString("hex"),
      publicKey: keyOf(api, signerId).publicKey,
    };
  });
  const approvals = payloads.flatMap((payload) =>
    ["s1", "s2"].map((signerId) => ({
      signerId,
      payload,
      signedBytesHex: api.encodeApproval(payload).toString("hex"),
      signature: api.signApproval(keyOf(api, signerId).privateKey, payload, signerId).signature,
      approvalId: api.approvalId(payload, signerId),
    })),
  );
  return {
    description:
      "Approvals: canonical bytes, Ed25519 signatures and ids. Test keys only: the seeds are public.",
    signers,
    approvals,
  };
}

function quorumVectors(api) {
  const sign = (signerId, request = REQUEST, window = WINDOW, keyName = signerId) =>
    api.signApproval(keyOf(api, keyName).privateKey, { ...request, ...window }, signerId);
  const signer = (signerId, ...keys) => ({
    signerId,
    keys: keys.length > 0 ? keys : [{ publicKey: keyOf(api, signerId).publicKey }],
  });
  const three = {
    signers: ["s1", "s2", "s3"].map((id) => signer(id)),
    thresholds: { standard: 1, risky: 2, dangerous: 3 },
  };
  const one = { signers: [signer("s1")], thresholds: { standard: 1, risky: 1, dangerous: 1 } };
  const rotated = {
    ...one,
    signers: [
      signer(
        "s1",
        { publicKey: keyOf(api, "s1").publicKey, notAfterMs: NOW_MS },
        { publicKey: keyOf(api, "s1-new").publicKey, notBeforeMs: NOW_MS - 10 },
      ),
    ],
  };
  const standard = { ...REQUEST, tier: "Standard" };
  const risky = { ...REQUEST, tier: "Risky" };
  const all = ["s1", "s2", "s3"].map((id) => sign(id));
  const garbage = Buffer.alloc(64, 7).toString("base64url");
  const used = all.map(({ signerId }) => api.approvalId({ ...REQUEST, ...WINDOW }, signerId));
  const strangers = Array.from({ length: 300 }, (_, index) => ({
    ...all[0],
    signerId: `x${index}`,
    signature: "",
  }));
  const cases = [
    ["standard-1-of-1", three, standard, [sign("s1", standard)]],
    ["risky-2-of-2", three, risky, [sign("s1", risky), sign("s2", risky)]],
    ["risky-1-of-2", three, risky, [sign("s1", risky)]],
    ["dangerous-3-of-3", three, REQUEST, all],
    ["unknown-signer", one, standard, [sign("s1", standard), sign("rogue", standard)]],
    ["invalid-signature", one, standard, [{ ...sign("s1", standard), signature: garbage }]],
    [
      "unknown-tier-is-dangerous",
      three,
      { ...REQUEST, tier: "standard" },
      [sign("s1", { ...REQUEST, tier: "standard" })],
    ],
    ["no-approvals", three, REQUEST, []],
    ["duplicate-signer-counts-once", three, REQUEST, [all[0], all[0], all[1]]],
    ["another-request", three, { ...REQUEST, ttlMs: 15_001 }, all],
    ["padded-signature", one, REQUEST, [{ ...all[0], signature: `${all[0].signature}==` }]],
    ["strict-garbage-extra", three, REQUEST, [...all, { ...all[0], signature: garbage }]],
    [
      "lenient-garbage-extra",
      { ...three, mode: "lenient" },
      REQUEST,
      [...all, { ...all[0], signature: garbage }],
    ],
    ["expired-at-its-end", one, REQUEST, [all[0]], { nowMs: WINDOW.notAfterMs }],
    ["valid-just-before-its-end", one, REQUEST, [all[0]], { nowMs: WINDOW.notAfterMs - 1 }],
    ["not-yet-valid", one, REQUEST, [all[0]], { nowMs: WINDOW.notBeforeMs - 1 }],
    ["rotated-key-retired", rotated, REQUEST, [sign("s1")]],
    ["rotated-key-before-the-end", rotated, REQUEST, [sign("s1")], { nowMs: NOW_MS - 1 }],
    ["rotated-key-new", rotated, REQUEST, [sign("s1", REQUEST, WINDOW, "s1-new")]],
    ["used-before", three, REQUEST, all, { consumedIds: used }],
    ["one-used-before", three, REQUEST, all, { consumedIds: used.slice(1, 2) }],
    ["300-unknown-signers", three, REQUEST, strangers],
  ].map(([name, config, request, approvals, more = {}]) =>
    quorumCase(api, { name, config, request, approvals, ...more }),
  );
  return { description: "Quorum verification. See README.md. Test keys only: the seeds are public.", cases };
}

function quorumCase(api, { name, config, request, approvals, nowMs = NOW_MS, consumedIds = [] }) {
  const definition = api.Quorum.define(config);
  if (!definition.ok) throw new Error(`${name}: ${JSON.stringify(definition.problems)}`);
  const expected = api.verifyQuorum({
    quorum: definition.quorum,
    leaseId: "acme/db/main",
    request,
    approvals,
    nowMs,
    traceId: name,
    consumedIds: new Set(consumedIds),
  });
  return { name, quorum: { mode: "strict", ...config }, request, approvals, nowMs, consumedIds, expected };
}

function keyOf({ signingKeyFromSeed }, name) {
  return signingKeyFromSeed(seedOf(name));
}

/** The documented seed of a test key: SHA-256 of "solehold test signer " and the key's name. */
function seedOf(name) {
  return digest(SEED_PREFIX + name);
}

function digest(text) {
  return createHash("sha256").update(text).digest();
}

/** JSON as the formatter of this repository prints it: on one line what fits on one line. */
function asText(value) {
  return `${layout(value, "", 0)}\n`;
}

function layout(value, indent, usedColumns) {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  const keys = isList ? value.map(() => "") : Object.keys(value).map((key) => `${JSON.stringify(key)}: `);
  const parts = Object.values(value);
  if (parts.length === 0) return isList ? "[]" : "{}";
  const [open, close] = isList ? ["[", "]"] : ["{ ", " }"];
  const line =
    open + parts.map((part, index) => keys[index] + layout(part, "", -Infinity)).join(", ") + close;
  // One column stays free for the comma behind it.
  if (usedColumns + line.length < LINE_WIDTH) return line;
  const inner = `${indent}  `;
  const lines = parts.map((part, index) => {
    const key = keys[index];
    return inner + key + layout(part, inner, inner.length + key.length);
  });
  return `${open.trim()}\n${lines.join(",\n")}\n${indent}${close.trim()}`;
}

async function main() {
  const api = await import("solehold/internal").catch((error) => {
    throw new Error(`the build is missing or broken, run "npm run build" first: ${error.message}`);
  });
  const files = buildVectors(api);
  const checking = process.argv.includes("--check");
  for (const [name, text] of Object.entries(files)) {
    const path = fileURLToPath(new URL(name, FOLDER));
    if (!checking) writeFileSync(path, text);
    else if (readFileSync(path, "utf8") !== text)
      throw new Error(`docs/vectors/${name} differs: run without --check`);
    console.log(`${checking ? "same" : "wrote"} docs/vectors/${name} (${text.length} characters)`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main().catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
