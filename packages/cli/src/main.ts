/**
 * The command line's one entry: words in, exit code out. It never throws and never ends the process; what
 * goes wrong is one line on stderr, and with --json a document on stdout.
 */
import { EXIT, Failure, SIGNAL_EXIT_BASE } from "./failure.ts";
import { escapeControls } from "./format/terminal.ts";
import { type Io, OutputClosedError, processIo } from "./io.ts";
import { commandNamed, parseArguments } from "./parse/arguments.ts";
import { COMMANDS } from "./registry.ts";

const SIGPIPE = 13;
const ALIASES: Readonly<Record<string, string>> = { "--help": "help", "-h": "help", "--version": "version" };

export async function main(argv: readonly string[], io: Io = processIo()): Promise<number> {
  try {
    return await dispatch(argv, io);
  } catch (error) {
    if (error instanceof OutputClosedError) return SIGNAL_EXIT_BASE + SIGPIPE;
    return await report(error, argv, io);
  }
}

async function dispatch([given = "help", ...words]: readonly string[], io: Io): Promise<number> {
  const name = Object.hasOwn(ALIASES, given) ? (ALIASES[given] ?? given) : given;
  const command = commandNamed(name, COMMANDS);
  const parsed = parseArguments(command, words);
  if (parsed.flags.has("help")) {
    const { commandHelp } = await import("./format/help.ts");
    io.stdout.write(commandHelp(command));
    return EXIT.ok;
  }
  const action = await command.action();
  return await action({ ...parsed, io, commands: COMMANDS });
}

async function report(error: unknown, argv: readonly string[], io: Io): Promise<number> {
  const failure = error instanceof Failure ? error : (await import("./format/errors.ts")).failureOf(error);
  const { exitCode, code, facts = {} } = failure.details;
  try {
    io.stderr.write(`solehold: ${escapeControls(failure.message)}\n`);
    if (wantsJson(argv)) {
      const document = { error: { code, message: failure.message, ...facts }, exitCode };
      io.stdout.write(`${JSON.stringify(document)}\n`);
    }
  } catch {
    // Both outputs are closed; the exit code still says it.
  }
  return exitCode;
}

/** Read from the words themselves: the mistake may be that they could not be parsed. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}
