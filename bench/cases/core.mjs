// The core alone: decisions per second, the time to import the library, the size of its main entry.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { createPolicy, decide, exactly } from "solehold";
import { selectCoordinator } from "solehold/coordinator";
import { MemoryAuditTrail } from "solehold/service";
import { callsPerSecond, figure, median } from "../lib/measure.mjs";

const ENTRY = createRequire(import.meta.url).resolve("solehold");
const LIBRARY = dirname(dirname(ENTRY));

export async function run({ quick, say }) {
  const options = quick ? { rounds: 3, roundMs: 150 } : { rounds: 7, roundMs: 500 };
  say("decide");
  const decisions = callsPerSecond(decisionLoop(), options);
  say("coordinator");
  const selections = callsPerSecond(selectionLoop(), options);
  say("audit");
  const appends = callsPerSecond(auditLoop(), options);
  const hashes = callsPerSecond(() => createHash("sha256").update(SAMPLE_LINE).digest("hex"), options);
  say("import");
  const importMs = importTime(quick ? 5 : 11);
  const { gzipped, dependencies } = await entrySize();
  return [
    figure(
      "core: decide (acquire, renew, use, release)",
      decisions,
      "decisions/s",
      ">= 2,000,000",
      decisions >= 2e6,
    ),
    figure("core: selectCoordinator, 5 candidates", selections, "selections/s", null, null),
    {
      ...figure("core: audit append in memory (floor: one SHA-256)", appends, "entries/s", null, null),
      floor: hashes,
      ratio: appends / hashes,
    },
    figure("core: import of the main entry", importMs, "ms", "< 60", importMs < 60),
    figure("core: main entry, bundled and gzipped", gzipped / 1_000, "kB", "<= 20", gzipped <= 20_000),
    figure("core: runtime dependencies of the main entry", dependencies, "packages", "0", dependencies === 0),
  ];
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

function importTime(rounds) {
  const script = `const t = performance.now(); await import(${JSON.stringify(ENTRY)}); console.log(performance.now() - t);`;
  const once = () =>
    Number(execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }));
  once();
  return median(Array.from({ length: rounds }, once));
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
