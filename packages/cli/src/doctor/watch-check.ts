/** Whether news of a write arrives, and how soon. Late news only makes waiting slower, never wrong. */
import type { Env, LeaseExecutor, LeaseKey } from "solehold";
import { delay } from "solehold/internal";
import { granted } from "./lease-checks.ts";
import type { Check } from "./report.ts";

const PATIENCE_MS = 3_000;
const TTL_MS = 30_000;

export async function checkNews(
  executor: LeaseExecutor,
  key: LeaseKey,
  env: Env,
): Promise<Omit<Check, "id">> {
  let heard: () => void = () => undefined;
  const news = new Promise<"heard">((resolve) => {
    heard = () => resolve("heard");
  });
  const watch = await executor.watch({ tenant: key.tenant, prefix: key.name }, () => heard());
  if (watch === null) return { status: "ok", detail: "none: waiting looks now and then" };
  try {
    const sentMs = env.monotonicMs();
    const { token } = granted(
      await executor.execute({ op: "acquire", key, holder: "doctor-news", ttlMs: TTL_MS }),
    );
    const answer = await Promise.race([news, delay(env, PATIENCE_MS)]);
    const tookMs = Math.round(env.monotonicMs() - sentMs);
    await executor.execute({ op: "release", key, holder: "doctor-news", token });
    return answer === "heard"
      ? { status: "ok", detail: `news of a write came ${tookMs} ms after it was sent` }
      : { status: "warn", detail: `no news of a write within ${PATIENCE_MS} ms: waiting will be slow` };
  } finally {
    await watch.close();
  }
}
