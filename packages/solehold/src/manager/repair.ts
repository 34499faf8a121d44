/** Replacing a damaged record, on an operator's word about the highest generation that was ever granted under it. */
import type { LeaseKey } from "../core/index.ts";
import { type Env, randomId, readClocks } from "../env/index.ts";
import { ABSENT } from "../store/index.ts";
import { floorRecord } from "./collector.ts";
import type { KnownState } from "./known-state.ts";
import type { StoreCalls } from "./store-calls.ts";

/** False when the record is not damaged (any more), or somebody else was faster. */
export async function repairRecord(
  key: LeaseKey,
  generation: bigint,
  context: { readonly env: Env; readonly calls: StoreCalls; readonly known: KnownState },
): Promise<boolean> {
  const { env, calls, known } = context;
  const { value } = await calls.read([key]);
  const stored = value[0] ?? ABSENT;
  if (stored.kind !== "corrupt") return false;
  const nowMs = known.time(readClocks(env)).latestMs;
  const tombstone = floorRecord(key.tenant, generation, nowMs, randomId(env));
  const next = { ...tombstone, key, note: "repaired" };
  const written = await calls.write({ key, expected: stored.version, next });
  return written.value.kind === "applied";
}
