/** Acquiring, with a notice on stderr when it has to wait: who holds the lease, and how long the wait may take. */
import {
  type AcquireOptions,
  type Lease,
  LeaseHeldError,
  type Leases,
  LeaseUnavailableError,
  type WaitingDetails,
} from "solehold";
import { realEnv } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { printNotice } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import { failureOf } from "../format/errors.ts";

/**
 * As `leases.acquire`. The first attempt does not wait: its denial is the only way to learn who holds the lease. The
 * time that it took counts as waiting.
 */
export async function acquireWithNotice(
  { leases }: { readonly leases: Leases },
  name: string,
  options: AcquireOptions & { readonly wait: number | "forever" },
  { io, flags }: Pick<Invocation, "io" | "flags">,
): Promise<Lease> {
  const { wait, signal } = options;
  const startedMs = realEnv.monotonicMs();
  try {
    const lease = await leases.acquire(name, { ...options, wait: 0 });
    if (signal?.aborted !== true) return lease;
    // The signal came while the attempt was under way, and an attempt that does not wait does not look at it.
    await lease.release();
    throw signal.reason;
  } catch (error) {
    const isWorthWaiting = error instanceof LeaseHeldError || error instanceof LeaseUnavailableError;
    if (wait === 0 || !isWorthWaiting) throw error;
    const { message, details } = failureOf(error);
    if (flags.has("json")) {
      const event = { event: "waiting", key: name, waitMs: wait, message, ...details.facts };
      io.stderr.write(`${JSON.stringify(event)}\n`);
    } else {
      const limit = wait === "forever" ? "without a limit" : `for at most ${shortDuration(wait)}`;
      printNotice(io, `waiting ${limit}: ${message}`);
    }
    const onWaiting = ({ position }: WaitingDetails): void => showPosition(name, position, { io, flags });
    if (wait === "forever") return await leases.acquire(name, { ...options, onWaiting });
    const leftMs = Math.max(1, Math.ceil(wait - (realEnv.monotonicMs() - startedMs)));
    return await leases.acquire(name, { ...options, onWaiting, wait: leftMs });
  }
}

/** Who is next needs no line of its own. Over a store a process knows its own waiters only; a server knows all. */
function showPosition(key: string, ahead: number, { io, flags }: Pick<Invocation, "io" | "flags">): void {
  if (ahead === 0) return;
  if (flags.has("json")) io.stderr.write(`${JSON.stringify({ event: "queued", key, ahead })}\n`);
  else printNotice(io, `${ahead} ahead in the queue`);
}
