/** Ctrl-C while waiting: the wait ends in order, a second Ctrl-C ends it at once. */
import { constants } from "node:os";
import { Failure, SIGNAL_EXIT_BASE } from "./failure.ts";
import type { Io } from "./io.ts";

const ENDING: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

export class Interrupted extends Failure {
  constructor(signal: NodeJS.Signals) {
    const exitCode = SIGNAL_EXIT_BASE + (constants.signals[signal] ?? 0);
    super(`interrupted by ${signal}`, { exitCode, code: "INTERRUPTED", facts: { signal } });
  }
}

/** For a command that Ctrl-C ends: the exit code of the work, or of the signal. */
export async function untilInterrupted(work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Interrupted) return error.details.exitCode;
    throw error;
  }
}

/** The work's signal aborts with an Interrupted; what the work then throws or returns is the result. */
export async function interruptible<Result>(
  io: Io,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  let restore: () => void = () => undefined;
  const impatience = new Promise<never>((_, reject) => {
    restore = io.onSignals(ENDING, (signal) => {
      if (controller.signal.aborted) reject(controller.signal.reason);
      else controller.abort(new Interrupted(signal));
    });
  });
  try {
    return await Promise.race([work(controller.signal), impatience]);
  } finally {
    restore();
  }
}
