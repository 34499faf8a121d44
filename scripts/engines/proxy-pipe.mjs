// One direction of one proxied connection: takes what arrives, and gives it on when the faults of the moment let it.
// What cannot pass yet waits in a queue, in order, together with the end or the failure of the stream.

/** Beyond this the sender is made to wait, as a full TCP window would. */
const MAX_QUEUED_BYTES = 1024 * 1024;

/** @typedef {{ frozen: boolean, dropReplies: boolean, delayMs: number }} Faults */
/** @typedef {{ readonly frozen: boolean, readonly drop: boolean, readonly delayMs: number }} PipeFaults */
/** @typedef {import("node:net").Socket} Socket */

export class ProxyPipe {
  #from;
  #to;
  #faults;
  #onDrop;
  /** @type {{ readonly deliver: () => void, readonly bytes: number, readonly notBefore: number }[]} */
  #queue = [];
  #queuedBytes = 0;
  #hasHole = false;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /**
   * @param {Socket} from
   * @param {Socket} to
   * @param {() => PipeFaults} faults
   * @param {(byteCount: number) => void} [onDrop]
   */
  constructor(from, to, faults, onDrop = () => {}) {
    this.#from = from;
    this.#to = to;
    this.#faults = faults;
    this.#onDrop = onDrop;
    from.on("data", (/** @type {Buffer} */ chunk) => this.#enqueue(chunk.length, () => to.write(chunk)));
    from.once("end", () => this.#enqueue(0, () => to.end()));
    // A refused or reset connection upstream is a reset for the client too, but not before the faults let it know.
    from.once("error", () => this.#enqueue(0, () => to.resetAndDestroy()));
    // Not `destroy`: what was written before must still go out.
    from.once("close", () => this.#enqueue(0, () => to.destroySoon()));
    to.on("drain", () => this.flush());
    to.once("close", () => clearTimeout(this.#timer));
  }

  /** Whether bytes were swallowed, so that nothing that follows would make sense to the receiver. */
  get hasHole() {
    return this.#hasHole;
  }

  flush() {
    clearTimeout(this.#timer);
    for (let item = this.#queue[0]; item !== undefined; item = this.#queue[0]) {
      const { frozen, drop, delayMs } = this.#faults();
      if (frozen) return;
      const waitMs = delayMs === 0 ? 0 : item.notBefore - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.flush(), waitMs);
        return;
      }
      if (!drop && this.#to.writableNeedDrain) return;
      this.#queue.shift();
      this.#queuedBytes -= item.bytes;
      if (drop) this.#drop(item.bytes);
      else item.deliver();
    }
    if (this.#queuedBytes < MAX_QUEUED_BYTES) this.#from.resume();
  }

  /** @param {number} byteCount */
  #drop(byteCount) {
    // The end of the stream is swallowed as well: the receiver is to wait for a reply that never comes.
    this.#hasHole = true;
    if (byteCount > 0) this.#onDrop(byteCount);
  }

  /**
   * @param {number} bytes
   * @param {() => void} deliver
   */
  #enqueue(bytes, deliver) {
    this.#queue.push({ deliver, bytes, notBefore: performance.now() + this.#faults().delayMs });
    this.#queuedBytes += bytes;
    if (this.#queuedBytes >= MAX_QUEUED_BYTES) this.#from.pause();
    if (this.#queue.length === 1) this.flush();
  }
}
