// The README's way from a running server to a fenced job, with its own lines.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { startServer } from "./support/server-process.ts";

const ROOT = join(import.meta.dirname, "../../..");
const SOLEHOLD = join(ROOT, "packages/cli/bin/solehold.js");

/** The commands of the README, as they stand there: from code blocks and from running text. */
function commandsOf(readme: string): readonly string[] {
  const joined = readme.replace(/\\\n\s*/g, " ");
  return [...joined.matchAll(/npx solehold [^`\n]+/g)].map(([command]) => command.trim());
}

it("the README leads from a running server to a fenced job, and shows who has what", async () => {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  expect(readme).toContain("npm ci && npm start");
  const server = await startServer([]);
  onTestFinished(async () => await server.stop());
  const commands = commandsOf(readme);
  const command = (name: string): string =>
    (commands.find((line) => line.startsWith(`npx solehold ${name}`)) ?? "false")
      .replace("npx solehold", `"${process.execPath}" "${SOLEHOLD}"`)
      .replaceAll("http://127.0.0.1:7077", server.url);
  const shell = async (line: string): Promise<string> =>
    (await promisify(execFile)("sh", ["-c", line])).stdout;
  // While the job runs it looks at the list, instead of sleeping.
  const shown = await shell(command("run").replace("sleep 20", command("ls")));
  expect(shown).toMatch(/^working with fence \d+\n/);
  expect(shown).toMatch(/reports\/nightly .* \d+ +held/);
  expect(await shell(command("run").replace("sleep 20", "true"))).toMatch(/^working with fence \d+\n$/);
});
