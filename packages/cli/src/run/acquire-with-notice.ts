/** Acquiring, with a notice on stderr when it has to wait: who holds the lease, and how long the wait may take. */
import {
  type AcquireOptions,
  type Lease,
  LeaseHeldError,
  type LeaseSet,
  type Leases,
  LeaseUnavailableError,
  type WaitingDetails,
} from "solehold";
import { realEnv } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { printNotice } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import { failureOf } from "../format/errors.ts";

type AcquireAllOptions = NonNullable<Parameters<Leases["acquireAll"]>[1]>;
type Notices = Pick<Invocation, "io" | "flags">;
type Waiting = { readonly wait: number | "forever"; readonly signal?: AbortSignal };

/**
 * As `leases.acquire`. The first attempt does not wait: its denial is the only way to learn who holds the lease. The
 * time that it took counts as waiting.
 */
export function acquireWithNotice(
  { leases }: { readonly leases: Leases },
  name: string,
  options: AcquireOptions & Waiting,
  notices: Notices,
): Promise<Lease> {
  return withNotice((more) => leases.acquire(name, { ...options, ...more }), { key: name }, options, notices);
}

/** As `leases.acquireAll`, in the same way. */
export function acquireAllWithNotice(
  { leases }: { readonly leases: Leases },
  names: readonly string[],
  options: AcquireAllOptions & Waiting,
  notices: Notices,
): Promise<LeaseSet> {
  const acquire = (more: AcquireAllOptions): Promise<LeaseSet> =>
    leases.acquireAll(names, { ...options, ...more });
  return withNotice(acquire, { keys: names }, options, notices);
}

async function withNotice<Held extends Lease | LeaseSet>(
  acquire: (options: Pick<AcquireOptions, "wait" | "onWaiting">) => Promise<Held>,
  asked: { readonly key: string } | { readonly keys: readonly string[] },
  { wait, signal }: Waiting,
  { io, flags }: Notices,
): Promise<Held> {
  const startedMs = realEnv.monotonicMs();
  try {
    const held = await acquire({ wait: 0 });
    if (signal?.aborted !== true) return held;
    // The signal came while the attempt was under way, and an attempt that does not wait does not look at it.
    await held.release();
    throw signal.reason;
  } catch (error) {
    const isWorthWaiting = error instanceof LeaseHeldError || error instanceof LeaseUnavailableError;
    if (wait === 0 || !isWorthWaiting) throw error;
    const { message, details } = failureOf(error);
    if (flags.has("json")) {
      const event = { event: "waiting", ...asked, waitMs: wait, message, ...details.facts };
      io.stderr.write(`${JSON.stringify(event)}\n`);
    } else {
      const limit = wait === "forever" ? "without a limit" : `for at most ${shortDuration(wait)}`;
      printNotice(io, `waiting ${limit}: ${message}`);
    }
    /** Who is next needs no line. Over a store a process knows its own waiters only; a server knows all. */
    const onWaiting = ({ position: ahead }: WaitingDetails): void => {
      if (ahead === 0) return;
      if (flags.has("json")) io.stderr.write(`${JSON.stringify({ event: "queued", ...asked, ahead })}\n`);
      else printNotice(io, `${ahead} ahead in the queue`);
    };
    if (wait === "forever") return await acquire({ wait, onWaiting });
    const leftMs = Math.max(1, Math.ceil(wait - (realEnv.monotonicMs() - startedMs)));
    return await acquire({ wait: leftMs, onWaiting });
  }
}
