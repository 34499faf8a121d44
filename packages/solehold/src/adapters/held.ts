/**
 * Work that something else starts (a queue, a scheduler, a request), under a lease. Adapters share it, so that a lost lease
 * means the same in all of them: the signal aborts, the lease is kept until the work has ended, and the run counts as
 * failed.
 */
import { type AcquireOptions, type Lease, LeaseLostError, type Leases } from "../client/index.ts";

/** What the work gets. */
export interface Held {
  /** Its `fence` is for what the work writes to. */
  readonly lease: Lease;
  /** Aborts when the lease is over, and when whatever started the work wants it to stop. */
  readonly signal: AbortSignal;
}

/** The name of the lease, or how it follows from what the work was started with. */
export type NameOf<Input> = string | ((input: Input) => string);

export type HeldOptions<Input> = AcquireOptions & { readonly name: NameOf<Input> };

/**
 * Throws what `leases.run` throws; and LeaseLostError for work that ended well after its lease was lost, because another
 * may have done it meanwhile.
 */
export async function runHeld<Input, Result>(
  leases: Leases,
  { name, ...options }: HeldOptions<Input>,
  input: Input,
  stop: AbortSignal | undefined,
  work: (held: Held) => Result | Promise<Result>,
): Promise<Result> {
  const stops = [options.signal, stop].filter((each) => each !== undefined);
  const waiting = stops.length === 0 ? options : { ...options, signal: AbortSignal.any(stops) };
  return await leases.run(nameOf(name, input), waiting, async (lease) => {
    const result = await work({ lease, signal: AbortSignal.any([lease.signal, ...stops]) });
    if (lease.state === "lost")
      throw new LeaseLostError(lease.key, lease.lossReason ?? "expired", lease.fence);
    return result;
  });
}

export function nameOf<Input>(name: NameOf<Input>, input: Input): string {
  return typeof name === "function" ? name(input) : name;
}

/** When the adapter is set up, and not when the first job comes. */
export function checkHeld(what: string, leases: unknown, options: unknown, work: unknown): void {
  if (typeof (leases as Partial<Leases> | null)?.acquire !== "function")
    throw new TypeError(`${what}: the first argument must be Leases: await connect(url)`);
  const name = (options as { name?: unknown } | null)?.name;
  if (typeof name !== "function" && (typeof name !== "string" || name === ""))
    throw new TypeError(
      `${what}: name must be the name of a lease, or a function that makes it, got ${name}`,
    );
  if (typeof work !== "function")
    throw new TypeError(`${what}: the third argument must be the work, a function`);
}
