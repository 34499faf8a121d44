/** How a command under a lease ended, as an exit code; and the notices on the way, as text or as JSON lines. */
import { constants } from "node:os";
import type { LossReason } from "solehold";
import type { Invocation } from "../command.ts";
import { EXIT, errorFailure, Failure, SIGNAL_EXIT_BASE } from "../failure.ts";
import { printNotice } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import type { StopCause } from "./deadline-enforcer.ts";
import type { CommandResult } from "./supervisor-handle.ts";

/** The command's own code, or why it has none. Throws when it could not be started. */
export function exitCodeOf(result: CommandResult, program: string): number {
  switch (result.kind) {
    case "ended":
      if (result.stoppedBecause !== null) return EXIT.lost;
      if (result.code !== null) return result.code;
      return result.signal === null ? EXIT.error : SIGNAL_EXIT_BASE + constants.signals[result.signal];
    case "supervisor-died":
      throw errorFailure(
        "SUPERVISOR_DIED",
        "the process that supervises the command ended unexpectedly, so the command was killed: look for an out-of-memory kill, then run it again",
      );
    case "not-started":
      throw notStarted(program, result.code, result.message);
  }
}

function notStarted(program: string, code: string, message: string): Failure {
  const facts = { program };
  const name = JSON.stringify(program);
  if (code === "LATE") return new Failure(message, { exitCode: EXIT.lost, code: "LEASE_LOST", facts });
  if (code === "ENOENT") {
    const text = `cannot find the command ${name}: check its name and PATH, and that the folder exists`;
    return new Failure(text, { exitCode: EXIT.notFound, code: "COMMAND_NOT_FOUND", facts });
  }
  const details = { exitCode: EXIT.cannotRun, code: "COMMAND_NOT_RUNNABLE", facts };
  return new Failure(`cannot run the command ${name}: ${message}`, details);
}

/** What the user should know while the command runs. */
export type RunNotice = { readonly key: string } & (
  | { readonly kind: "stopping"; readonly cause: StopCause; readonly reason: LossReason | null }
  | { readonly kind: "lost-but-ignored"; readonly reason: LossReason }
  | { readonly kind: "signal-denied"; readonly signal: NodeJS.Signals }
  | { readonly kind: "not-released"; readonly why: "unreachable" | "survivors"; readonly endsInMs: number }
);

const CAUSES: { readonly [cause in StopCause]: string } = {
  deadline: "it could not be renewed in time",
  lost: "it was lost",
  orphaned: "its holder died",
  survivors: "the command ended",
};

function describeNotice(notice: RunNotice): string {
  const { key } = notice;
  switch (notice.kind) {
    case "stopping": {
      const reason = notice.reason === null ? "" : ` (${notice.reason})`;
      return `lost the lease ${key}: ${CAUSES[notice.cause]}${reason}; stopping the command`;
    }
    case "lost-but-ignored":
      return `lost the lease ${key} (${notice.reason}); the command goes on, as --on-loss ignore says`;
    case "signal-denied":
      return `may not send ${notice.signal} to the command: it runs under another user, and may outlive its lease`;
    case "not-released": {
      const killed = "processes of the command could not be killed";
      const why = notice.why === "survivors" ? killed : "the store did not answer";
      return `could not release the lease ${key}: ${why}; it ends by itself in ${shortDuration(notice.endsInMs)}`;
    }
  }
}

/** On stderr: stdout belongs to the command. */
export function notifier({ io, flags }: Invocation): (notice: RunNotice) => void {
  return (notice) => {
    if (flags.has("json")) io.stderr.write(`${JSON.stringify({ event: notice.kind, ...notice })}\n`);
    else printNotice(io, describeNotice(notice));
  };
}
