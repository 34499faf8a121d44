/**
 * W3C trace context: a request that brings a trace keeps it, one that does not gets a new one; the answer
 * names the trace and the server's own span in it.
 */
import type { Env } from "solehold";

export interface Trace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The caller's span; null when it brought none. */
  readonly parentId: string | null;
  readonly sampled: boolean;
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);

export function traceOf(header: string | string[] | undefined, env: Env): Trace {
  if (header === undefined) return { traceId: hex(env, 16), parentId: null, sampled: false };
  const match = typeof header === "string" ? TRACEPARENT.exec(header) : null;
  const [, traceId = NO_TRACE, parentId = NO_SPAN, flags = "00"] = match ?? [];
  if (traceId === NO_TRACE || parentId === NO_SPAN)
    return { traceId: hex(env, 16), parentId: null, sampled: false };
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparent({ traceId, sampled }: Trace, spanId: string): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

export function newSpanId(env: Env): string {
  return hex(env, 8);
}

/** Every request needs an id: drawn and written out many at a time, they cost a tenth. */
const POOL_BYTES = 4_096;

interface HexPool {
  digits: string;
  used: number;
}

const pools = new WeakMap<Env, HexPool>();

function hex(env: Env, bytes: number): string {
  let pool = pools.get(env);
  if (pool === undefined || pool.used + bytes * 2 > pool.digits.length) {
    pool = { digits: Buffer.from(env.randomBytes(POOL_BYTES)).toString("hex"), used: 0 };
    pools.set(env, pool);
  }
  pool.used += bytes * 2;
  return pool.digits.slice(pool.used - bytes * 2, pool.used);
}
