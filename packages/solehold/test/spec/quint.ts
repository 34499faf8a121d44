/** Runs the model checker on the model in `spec/`, with the one backend that needs no download. */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const SPEC = resolve(dirname(fileURLToPath(import.meta.url)), "../../../../spec");
const PACKAGE = createRequire(import.meta.url).resolve("@informalsystems/quint/package.json");
const QUINT = join(dirname(PACKAGE), "dist/src/cli.js");

export interface QuintRun {
  readonly code: number | null;
  readonly output: string;
}

export function quint(command: string, file: string, options: readonly string[] = []): Promise<QuintRun> {
  return new Promise((done, failed) => {
    const child = spawn(process.execPath, [QUINT, command, join(SPEC, file), ...options]);
    let output = "";
    const take = (chunk: Buffer): void => {
      output += chunk.toString();
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", failed);
    child.on("close", (code) => done({ code, output }));
  });
}

export interface Simulation {
  readonly main: string;
  readonly invariant: string;
  readonly samples: number;
  readonly steps: number;
  readonly seed: number;
  readonly witnesses?: readonly string[];
}

export function simulate(file: string, { main, invariant, samples, steps, seed, witnesses }: Simulation) {
  return quint("run", file, [
    "--backend=typescript",
    "--verbosity=1",
    `--main=${main}`,
    `--invariant=${invariant}`,
    `--max-samples=${samples}`,
    `--max-steps=${steps}`,
    `--seed=${seed}`,
    ...(witnesses === undefined ? [] : ["--witnesses", ...witnesses]),
  ]);
}

/** Traces of the model as it should be, each a list of raw states. */
export async function traces(count: number, steps: number, seed: number): Promise<readonly RawTrace[]> {
  const folder = mkdtempSync(join(tmpdir(), "solehold-spec-"));
  try {
    const { code, output } = await quint("run", "lease.qnt", [
      "--backend=typescript",
      "--verbosity=1",
      "--main=shipped",
      "--mbt",
      `--max-samples=${count}`,
      `--n-traces=${count}`,
      `--max-steps=${steps}`,
      `--seed=${seed}`,
      `--out-itf=${join(folder, "{seq}.itf.json")}`,
    ]);
    if (code !== 0) throw new Error(`quint could not make traces: ${output}`);
    return readdirSync(folder).map(
      (name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as RawTrace,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export interface RawTrace {
  readonly states: readonly Readonly<Record<string, unknown>>[];
}
