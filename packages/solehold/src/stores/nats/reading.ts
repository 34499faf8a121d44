/** Reading records: all gets of a call are in flight at once, answered in the order in which they were sent. */
import type { LeaseKey } from "../../core/index.ts";
import type { ReadReply } from "../../store/index.ts";
import type { Answer, NatsCalls } from "./calls.ts";
import type { Joined } from "./data-set.ts";
import { storedFrom } from "./records.ts";
import type { KeptMessage } from "./replies.ts";

export async function readRecords(calls: NatsCalls, keys: readonly LeaseKey[]): Promise<ReadReply> {
  return readJoined(calls, await calls.data.join(), keys);
}

export async function readJoined(
  calls: NatsCalls,
  joined: Joined,
  keys: readonly LeaseKey[],
): Promise<ReadReply> {
  const { value, storeTimeMs } = await lastMessages(calls, joined, keys);
  const records = keys.map((key, index) => {
    const kept = value[index] ?? null;
    if (kept?.isMarker === true) sweep(calls, joined, key, kept, storeTimeMs);
    return storedFrom(key, kept, calls.data.lineage, storeTimeMs);
  });
  return { storeTimeMs, records };
}

export function lastMessages(
  calls: NatsCalls,
  joined: Joined,
  keys: readonly LeaseKey[],
): Promise<Answer<readonly (KeptMessage | null)[]>> {
  const { layout } = calls.data;
  return calls.send(joined, "not-applied", () =>
    Promise.all(keys.map((key) => calls.last(joined, layout.recordSubject(joined.id, key)))),
  );
}

/**
 * A key is absent without its marker as well, so one that all watchers have heard of goes: the bucket does not
 * grow with the keys that were ever used. What followed the marker is not touched.
 */
function sweep(
  { data }: NatsCalls,
  { wire, id }: Joined,
  key: LeaseKey,
  marker: KeptMessage,
  storeTimeMs: number,
): void {
  if (storeTimeMs - Number(marker.atMicros / 1_000n) < data.markerKeptMs) return;
  const filter = data.layout.recordSubject(id, key);
  const purge = JSON.stringify({ filter, seq: marker.sequence + 1 });
  // Nobody waits for it: one that fails is met again.
  wire.request(data.layout.api("STREAM.PURGE"), purge).catch(() => undefined);
}
