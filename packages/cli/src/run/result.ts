/** How a command under a lease ended, as an exit code; and the news on the way, in words or as JSON lines. */
import { constants } from "node:os";
import { EXIT, SIGNAL_EXIT_BASE } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import type { Io } from "../io.ts";
import { shortDuration } from "../text/duration.ts";
import type { HeldCommandNews } from "./held-command.ts";
import type { KeeperResult } from "./keeper-handle.ts";

/** The command's own code, or why it has none. Throws when it could not be started. */
export function exitCodeOf(result: KeeperResult, program: string): number {
  switch (result.kind) {
    case "ended":
      if (result.stoppedBecause !== null) return EXIT.lost;
      return result.code ?? signalExitCode(result.signal);
    case "keeper-died":
      throw new Failure(
        "the process that watches the command ended unexpectedly, so the command was killed: look for an out-of-memory kill, then run it again",
        { exitCode: EXIT.error, code: "KEEPER_DIED" },
      );
    case "not-started":
      throw notStarted(program, result.code, result.message);
  }
}

export function signalExitCode(signal: NodeJS.Signals | null): number {
  return signal === null ? EXIT.error : SIGNAL_EXIT_BASE + (constants.signals[signal] ?? 0);
}

function notStarted(program: string, code: string, message: string): Failure {
  const facts = { program };
  if (code === "LATE") return new Failure(message, { exitCode: EXIT.lost, code: "LEASE_LOST", facts });
  if (code === "ENOENT") {
    const text = `cannot find the command ${JSON.stringify(program)}: check its name and PATH, and that the folder exists`;
    return new Failure(text, { exitCode: EXIT.notFound, code: "COMMAND_NOT_FOUND", facts });
  }
  return new Failure(`cannot run the command ${JSON.stringify(program)}: ${message}`, {
    exitCode: EXIT.cannotRun,
    code: "COMMAND_NOT_RUNNABLE",
    facts,
  });
}

const CAUSES = {
  deadline: "it could not be renewed in time",
  lost: "it was lost",
  orphaned: "its holder died",
  leftovers: "the command ended",
} as const;

export function newsInWords(key: string, news: HeldCommandNews): string {
  switch (news.kind) {
    case "stopping": {
      const why = news.reason === null ? CAUSES[news.cause] : `${CAUSES[news.cause]} (${news.reason})`;
      return `lost the lease ${key}: ${why}; stopping the command`;
    }
    case "lost-but-ignored":
      return `lost the lease ${key} (${news.reason}); the command goes on, as --on-loss ignore says`;
    case "powerless":
      return `may not send ${news.signal} to the command: it runs under another user, and may outlive its lease`;
    case "not-released": {
      const why =
        news.why === "leftovers"
          ? "processes of the command could not be killed"
          : "the store did not answer";
      return `could not give the lease ${key} back: ${why}; it ends by itself in ${shortDuration(news.endsInMs)}`;
    }
  }
}

/** On stderr: stdout belongs to the command. */
export function announcer(io: Io, key: string, format: "text" | "json"): (news: HeldCommandNews) => void {
  return (news) => {
    const line =
      format === "json"
        ? JSON.stringify({ event: news.kind, key, ...news })
        : `solehold: ${newsInWords(key, news)}`;
    io.stderr.write(`${line}\n`);
  };
}
