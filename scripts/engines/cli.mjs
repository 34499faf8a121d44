// `npm run engines -- up [names...] | down [names...] | status [--json]`: the shared engines of this checkout.
import { parseArgs } from "node:util";
import { engineNames } from "./programs.mjs";
import { down, status, up } from "./shared.mjs";
import { stateFilePath } from "./state.mjs";

const USAGE = `npm run engines -- up [names...]     start them (default: ${engineNames.join(", ")})
npm run engines -- down [names...]   stop them and delete their data (default: all)
npm run engines -- status [--json]   what runs, where, and how much memory it takes`;

/** @param {string} message */
const say = (message) => console.error(message);

/** @param {readonly import("./index.mjs").EngineName[]} names */
async function commandUp(names) {
  const results = await up(names, say);
  const rows = results.map(({ name, outcome, record }) =>
    record?.state === "up"
      ? [name, record.version, record.urls.join(" "), record.secondsToReady.toFixed(2), outcome]
      : [name, "-", "-", "-", outcome],
  );
  printTable(["engine", "version", "url", "ready after s", ""], rows);
  console.log(`state file: ${stateFilePath()}`);
  for (const { name, outcome, reason } of results) if (reason) say(`\n${name} ${outcome}: ${reason}`);
  const failed = results.some(({ outcome }) => outcome === "failed");
  // A developer may lack one server; a CI run that silently tests less is worse than a red one.
  const lacking = process.env.CI === "true" && results.some(({ outcome }) => outcome === "unavailable");
  return failed || lacking ? 1 : 0;
}

/** @param {readonly import("./index.mjs").EngineName[]} names */
async function commandDown(names) {
  const stopped = await down(names, say);
  console.log(stopped.length === 0 ? "no engines were up" : `stopped ${stopped.join(", ")}`);
  return 0;
}

/** @param {"json" | "table"} format */
function commandStatus(format) {
  const engines = status();
  if (format === "json") {
    console.log(JSON.stringify({ stateFile: stateFilePath(), engines }, undefined, 2));
    return 0;
  }
  if (engines.length === 0) {
    console.log("no engines are up: npm run engines -- up");
    return 0;
  }
  const rows = engines.map(({ name, state, record, memoryBytes }) =>
    record.state === "up"
      ? [
          ...[name, state, record.version, record.urls.join(" ")],
          ...[record.processes.map(({ pid }) => pid).join(" "), (memoryBytes / 1e6).toFixed(0)],
        ]
      : [name, state, "-", record.reason, "-", "-"],
  );
  printTable(["engine", "state", "version", "url", "pids", "memory MB"], rows);
  return 0;
}

/** @param {string} message */
function fail(message) {
  say(`${message}\n\n${USAGE}`);
  return 2;
}

/**
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 */
function printTable(head, rows) {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  for (const row of [head, ...rows]) {
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    );
  }
}

/** @returns {Promise<number>} */
async function main() {
  if (process.platform !== "linux") return fail("the engines run on Linux only: they are Debian packages");
  /** @type {{ values: { json?: boolean | undefined }, positionals: string[] }} */
  let parsed;
  try {
    parsed = parseArgs({ options: { json: { type: "boolean" } }, allowPositionals: true });
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
  const [command, ...given] = parsed.positionals;
  if (command === "up" || command === "down") {
    const unknown = given.filter((name) => !engineNames.some((each) => each === name));
    if (unknown.length > 0)
      return fail(`unknown engine ${unknown.join(", ")}: there are ${engineNames.join(", ")}`);
    const names = given.length === 0 ? engineNames : engineNames.filter((name) => given.includes(name));
    return command === "up" ? commandUp(names) : commandDown(names);
  }
  if (given.length > 0) return fail(`${command} takes no names`);
  if (command === "status") return commandStatus(parsed.values.json ? "json" : "table");
  return fail(command === undefined ? "say what to do" : `unknown command ${command}`);
}

try {
  process.exitCode = await main();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
