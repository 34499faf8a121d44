/** Reading records: all requests of a call are in flight at once, and none of them stores anything. */
import type { StreamInfo } from "@nats-io/jetstream";
import type { LeaseKey } from "../../core/index.ts";
import type { ReadReply } from "../../store/index.ts";
import type { NatsSession } from "./session.ts";

/** With a look at the stream behind it, which shows whether all this still is the data that was joined. */
export async function readRecords(session: NatsSession, keys: readonly LeaseKey[]): Promise<ReadReply> {
  const reading = Promise.all(keys.map((key) => session.last(key)));
  const [messages, info] = await Promise.all([reading, session.check()]);
  const records = keys.map((key, index) => session.stored(key, messages[index] ?? null));
  return { storeTimeMs: null, records, revision: revisionOf(info) };
}

/**
 * A counter that grows with every write, and that no loss sets back: the time of the stream's last message in
 * microseconds of the server's clock. A stream that was deleted, or that lost its last messages in a crash, gets a
 * message with the present time before anything is granted, because a client that joins writes the identity. Where the
 * stream has forgotten the time of its last message, its age in messages since it was created is a lower bound.
 */
export function revisionOf({ created, state }: StreamInfo): bigint {
  const atLeast = microsOf(created) + BigInt(state.last_seq);
  const lastWrite = microsOf(state.last_ts);
  if (lastWrite > atLeast) return lastWrite;
  return atLeast;
}

/** RFC 3339 with up to nine digits after the point, of which a Date keeps three. */
function microsOf(time: string): bigint {
  const milliseconds = Date.parse(time);
  const micros = /\.\d{3}(\d{1,3})/.exec(time)?.[1] ?? "";
  return Number.isNaN(milliseconds) ? 0n : BigInt(milliseconds) * 1_000n + BigInt(micros.padEnd(3, "0"));
}
