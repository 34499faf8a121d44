// The command as a user runs it, on the one case that needs no engine, with rounds too short for any figure to mean much.
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

const program = fileURLToPath(new URL("../run.mjs", import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "solehold-bench-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Some cases need engines and are not run here: a name that the library has no more would show only in a measurement. */
test("cases take nothing from the library that it does not have", async () => {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const files = ["cases", "lib"].flatMap((part) =>
    readdirSync(join(root, part)).map((file) => join(root, part, file)),
  );
  const missing: string[] = [];
  for (const file of files) {
    const imports = readFileSync(file, "utf8").matchAll(/^import \{([^}]*)\} from "(solehold[^"]*)";/gm);
    for (const [, names = "", entry = ""] of imports) {
      const exported = await import(entry);
      for (const name of names.match(/\w+/g) ?? [])
        if (!(name in exported)) missing.push(`${name} of ${entry}`);
    }
  }
  expect(missing).toEqual([]);
});

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function bench(...words: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...words], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
    });
  });
}

test("a case prints one JSON array, tells its progress elsewhere, and leaves figures, a table and a plot", async () => {
  const words = ["embedded", "--quick", "--json", "--rounds", "1", "--round-ms", "20", "--out", folder];
  const { code, stdout, stderr } = await bench(...words);
  expect(stderr).toContain("embedded: 64 in flight");
  expect(code).toBe(0);
  const rows: Record<string, unknown>[] = JSON.parse(stdout);
  expect(rows.map((row) => row.case)).toEqual([
    "embedded: 1 in flight, warm keys",
    "embedded: 1 in flight, cold keys",
    "embedded: 64 in flight, warm keys",
    "embedded: 64 in flight, cold keys",
  ]);
  for (const row of rows) {
    expect(row).toEqual({
      case: expect.any(String),
      unit: "pairs/s",
      ours: expect.any(Number),
      floor: expect.any(Number),
      ratio: expect.any(Number),
      peers: expect.objectContaining({ "proper-lockfile (not durable)": expect.any(Number) }),
      bar: ">= 0.8 x floor, ahead of every peer",
      met: expect.any(Boolean),
      // What is possible at best is measured with warm keys.
      ...(String(row.case).endsWith("warm keys") ? { limit: expect.any(Number) } : {}),
    });
    expect(row.ours).toBeGreaterThan(0);
  }
  expect(readdirSync(folder).sort()).toEqual(["README.md", "embedded.json", "embedded.svg"]);
  const report = readFileSync(join(folder, "README.md"), "utf8");
  expect(report).toContain("| embedded: 64 in flight, warm keys |");
  expect(report).toContain("ours does more: fence, tombstone");
  expect(readFileSync(join(folder, "embedded.svg"), "utf8")).toMatch(
    /^<svg [\s\S]*raw SQLite[\s\S]*<\/svg>\n$/,
  );
});

test("an unknown case or a wrong number is answered with what there is", async () => {
  expect(await bench("mysql")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/unknown case mysql: there are .*embedded.*redis/),
  });
  expect(await bench("embedded", "--rounds", "0")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--rounds must be a whole number from 1, got 0"),
  });
});
