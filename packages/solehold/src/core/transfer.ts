/** A lease on its way from one process to another: what the secret of `lease.transfer()` says. */
import { formatFence, parseFence } from "./fence.ts";
import type { LeaseKey } from "./key.ts";

export interface Transfer {
  readonly key: LeaseKey;
  readonly holder: string;
  readonly token: string;
  readonly ttlMs: number;
  readonly fence: bigint;
}

const VERSION = 1;

export function writeTransfer({ key, holder, token, ttlMs, fence }: Transfer): string {
  const secret = { v: VERSION, ...key, holder, token, ttlMs, fence: formatFence(fence) };
  return Buffer.from(JSON.stringify(secret)).toString("base64url");
}

/** Throws RangeError when `lease.transfer()` did not make it. */
export function readTransfer(secret: string): Transfer {
  const transfer = parseTransfer(secret);
  if (transfer !== null) return transfer;
  throw new RangeError(
    "the secret to adopt is not one that lease.transfer() made: pass that string unchanged",
  );
}

function parseTransfer(secret: string): Transfer | null {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(secret, "base64url").toString("utf8"));
    const { v, tenant, name, holder, token, ttlMs, fence: written } = parsed as Record<string, unknown>;
    const texts = [tenant, name, holder, token];
    if (v !== VERSION || !texts.every((text) => typeof text === "string" && text.length > 0)) return null;
    const fence = typeof written === "string" ? parseFence(written) : null;
    if (fence === null || typeof ttlMs !== "number") return null;
    const key = { tenant: tenant as string, name: name as string };
    return { key, holder: holder as string, token: token as string, ttlMs, fence };
  } catch {
    return null;
  }
}
