/** docs/approvals.md as its reader would follow it: keys, the policy file, a server, three signatures, the operation. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { CliProcess } from "../../packages/cli/test/support/cli-process.ts";
import { run } from "../../packages/cli/test/support/fake-io.ts";
import { startServer } from "../../packages/cli/test/support/server-process.ts";
import { temporaryFolder } from "../../packages/cli/test/support/temporary.ts";
import { allPages, ROOT } from "./pages.ts";
import { commandLines, wordsOf } from "./shell.ts";

const blocks = allPages().find(({ path }) => path === "docs/approvals.md")?.blocks ?? [];
const of = (language: string): readonly string[] =>
  blocks.filter((block) => block.language === language).map(({ code }) => code);
/** The words of each command, in the order of the page, without "solehold". */
const commands = of("sh")
  .flatMap(commandLines)
  .map((line) => wordsOf(line).slice(1));

it("leads from keys to an operation that runs once, command by command", async () => {
  const folder = temporaryFolder();
  const there = (words: readonly string[]) =>
    words.map((word) => (/\.(pem|json|sh)$/.test(word) ? join(folder, word) : word));
  const [keygen = [], serve = [], ...operation] = commands;

  const entries = new Map<string, unknown>();
  for (const signer of ["alice", "bob", "carol"]) {
    const { stdout } = await run(there(keygen.map((word) => word.replace("alice", signer))));
    entries.set(signer, JSON.parse(stdout.trim().split("\n").at(-1) ?? ""));
  }
  const [shown = ""] = of("json");
  const policy = JSON.parse(shown) as { signers: { signerId: string }[] };
  const signers = policy.signers.map(({ signerId }) => entries.get(signerId));
  writeFileSync(join(folder, "policy.json"), JSON.stringify({ ...policy, signers }));
  const server = await startServer(there(serve.slice(1)));
  onTestFinished(() => server.stop());

  writeFileSync(join(folder, "drop.sh"), "#!/bin/sh\necho dropped\n", { mode: 0o755 });
  const drop = async () => {
    const words = there(operation.at(-1) ?? []).map((word) =>
      word.replace("http://127.0.0.1:7077", server.url),
    );
    const process = new CliProcess(words);
    const { code } = await process.exit;
    return [code, process.stdout, /QUORUM_NOT_MET/.exec(process.stderr)?.[0]];
  };
  const signed: unknown[] = [];
  for (const approve of operation.slice(0, -1)) {
    signed.push((await run(there(approve), { answer: "yes" })).code);
    if (signed.length === 2) expect(await drop()).toEqual([1, "", "QUORUM_NOT_MET"]);
  }
  expect(signed).toEqual([0, 0, 0]);
  expect(await drop()).toEqual([0, "dropped\n", undefined]);
  expect(await drop()).toEqual([1, "", "QUORUM_NOT_MET"]);
});

it("shows what the example prints", () => {
  const example = readFileSync(join(ROOT, "examples/three-approvers.mjs"), "utf8");
  const [printed = ""] = of("text");
  const lines = printed
    .trimEnd()
    .split("\n")
    .map((line) => `//   ${line}\n`);
  expect(example).toContain(`// Prints:\n${lines.join("")}import `);
});
