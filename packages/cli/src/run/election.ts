/** One term of leadership after another: with a command for each, or with lines on stdout. */
import { formatFence, type Lease, type Leases } from "solehold";
import { Interrupted, interruptible } from "../interrupt.ts";
import type { Io } from "../io.ts";
import { HeldCommand } from "./held-command.ts";
import type { RunOptions } from "./options.ts";
import { announcer, exitCodeOf } from "./result.ts";

export interface Election {
  readonly leases: Leases;
  readonly key: string;
  readonly options: RunOptions;
  readonly io: Io;
  readonly format: "text" | "json";
}

/**
 * The exit code of the command when it ended by itself. Throws Interrupted when the end is asked for while
 * campaigning, or at any moment of a term that is then lost: no further term is campaigned for.
 */
export async function leadWithCommand(election: Election, command: readonly string[]): Promise<number> {
  const { leases, key, options, io, format } = election;
  const { acquire, plan } = options;
  const announce = announcer(io, key, format);
  for (;;) {
    const held = new HeldCommand({ io, plan, command, announce });
    try {
      const lease = await interruptible(io, (signal) =>
        leases.acquire(key, { ...acquire, wait: "forever", signal }),
      );
      const result = await held.run(lease, leases.executor);
      const lost = result.kind === "ended" ? result.stoppedBecause !== null : isLate(result);
      if (!lost) return exitCodeOf(result, command[0] ?? "");
      if (held.askedToEndBy !== null) throw new Interrupted(held.askedToEndBy);
    } finally {
      held.dismiss();
    }
  }
}

function isLate(result: { readonly kind: string; readonly code?: string }): boolean {
  return result.kind === "not-started" && result.code === "LATE";
}

/** Until it is interrupted: throws Interrupted after the current term was given back. */
export async function leadWithLines(election: Election): Promise<number> {
  const { leases, key, options, io } = election;
  return await interruptible(io, async (signal) => {
    for await (const lease of leases.elect(key, { ...options.acquire, signal })) {
      say(election, "elected", lease);
      await termOver(lease, signal);
      say(election, signal.aborted ? "resigned" : "lost", lease);
      if (signal.aborted) break;
    }
    throw signal.reason;
  });
}

function say({ io, format, key }: Election, event: "elected" | "lost" | "resigned", lease: Lease): void {
  const { fence, holder, lossReason } = lease;
  if (format === "json") {
    const line = { event, key, holder, fence: formatFence(fence), reason: lossReason };
    io.stdout.write(`${JSON.stringify(line)}\n`);
    return;
  }
  const reason = lossReason === null ? "" : ` (${lossReason})`;
  io.stdout.write(`${event}  ${key}  fence ${fence}  ${holder}${reason}\n`);
}

function termOver(lease: Lease, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const either = AbortSignal.any([lease.signal, signal]);
    if (either.aborted) resolve();
    else either.addEventListener("abort", () => resolve(), { once: true });
  });
}
