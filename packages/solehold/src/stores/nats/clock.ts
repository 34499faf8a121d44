/**
 * The server's time. No reply of JetStream's carries it, but every stored message has the time at which it was
 * stored: one that was written after a call began, and read back before it ended, tells the time in between.
 */
import { type BucketInfo, lastMessage } from "./bucket.ts";
import type { NatsLayout } from "./layout.ts";
import { type KeptMessage, RefusedRequest, sequenceOf } from "./replies.ts";
import type { NatsWire } from "./wire.ts";

export interface Tick {
  readonly sequence: number;
  readonly atMicros: bigint;
}

const MAX_READS = 100;

/** Writes to the clock key and reads it back, in one round trip. */
export async function tick(wire: NatsWire, layout: NatsLayout, reads: BucketInfo["reads"]): Promise<Tick> {
  const { clockSubject } = layout;
  const ticking = wire.request(clockSubject).then(sequenceOf);
  const reading = lastMessage(wire, layout, reads, clockSubject);
  const [sequence, first] = await Promise.all([ticking, reading]);
  return readBack(first, sequence, () => lastMessage(wire, layout, reads, clockSubject));
}

/**
 * The time of the message that was written with this sequence, or of one that followed it: a later one of
 * another client was stored before it was read, too. Where there are replicas a read may overtake the write.
 */
export async function readBack(
  first: KeptMessage | null,
  sequence: number,
  again: () => Promise<KeptMessage | null>,
): Promise<Tick> {
  let kept = first;
  for (let attempt = 0; attempt < MAX_READS; attempt += 1) {
    if (kept !== null && kept.sequence >= sequence) return { sequence, atMicros: kept.atMicros };
    kept = await again();
  }
  throw new RefusedRequest(0, "a message could not be read back");
}
