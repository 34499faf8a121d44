/** Messages of gRPC inside the bytes of a stream: each has a flag for compression and its length in front. */
import { ProtocolError } from "./protobuf.ts";

const PREFIX_BYTES = 5;
const MAX_REPLY_BYTES = 64 * 2 ** 20;
const NOTHING = Buffer.alloc(0);

export function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

/** Puts together what arrives in pieces. */
export class Deframer {
  #rest: Buffer = NOTHING;

  add(piece: Buffer): void {
    this.#rest = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
  }

  /** The next whole message, taken out; null while it is not there. */
  next(): Buffer | null {
    const rest = this.#rest;
    if (rest.length < PREFIX_BYTES) return null;
    if (rest[0] !== 0) throw new ProtocolError("it is compressed, which nobody asked for");
    const end = PREFIX_BYTES + rest.readUInt32BE(1);
    if (end > MAX_REPLY_BYTES) throw new ProtocolError(`it has ${end} bytes, more than ${MAX_REPLY_BYTES}`);
    if (rest.length < end) return null;
    this.#rest = rest.subarray(end);
    return rest.subarray(PREFIX_BYTES, end);
  }
}
