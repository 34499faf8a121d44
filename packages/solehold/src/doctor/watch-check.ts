/** Whether a notification of a write arrives, and how soon. A late one only makes waiting slower, never wrong. */
import type { LeaseKey } from "../core/index.ts";
import { delay, type Env } from "../env/index.ts";
import type { LeaseExecutor } from "../executor/index.ts";
import { granted, TTL_MS } from "./lease-checks.ts";
import { type Finding, ok, warn } from "./report.ts";

const TIMEOUT_MS = 3_000;

export async function checkNotifications(executor: LeaseExecutor, key: LeaseKey, env: Env): Promise<Finding> {
  let onEvent: () => void = () => undefined;
  const notified = new Promise<"notified">((resolve) => {
    onEvent = () => resolve("notified");
  });
  const watch = await executor.watch({ tenant: key.tenant, prefix: key.name }, () => onEvent());
  if (watch === null) return ok("none: a waiter polls");
  try {
    const sentMs = env.monotonicMs();
    const holder = "doctor-watch";
    const { token } = granted(await executor.execute({ op: "acquire", key, holder, ttlMs: TTL_MS }));
    const first = await Promise.race([notified, delay(env, TIMEOUT_MS)]);
    const tookMs = Math.round(env.monotonicMs() - sentMs);
    await executor.execute({ op: "release", key, holder, token });
    return first === "notified"
      ? ok(`the notification of a write came ${tookMs} ms after it was sent`)
      : warn(`no notification of a write within ${TIMEOUT_MS} ms: waiting will be slow`);
  } finally {
    await watch.close();
  }
}
