/**
 * What a stream sends: those answers and events that are ready together leave together. Pongs never pile up: while earlier
 * data is unsent only the latest ping will be answered (RFC 6455, 5.5.3).
 */
import { type Env, joinMessages, type ServerMessage } from "solehold/internal";
import type { WebSocket } from "ws";

export interface OutgoingOptions {
  readonly env: Env;
  readonly socket: WebSocket;
  readonly maxBufferedBytes: number;
  /** More or less is unsent than before. */
  onChange(): void;
}

/** A client that was answered thousands at once reads them in portions, with turns of its event loop between. */
const MESSAGES_PER_FRAME = 32;
/** A client that sends pings and reads nothing wants no answers. */
const MOST_UNANSWERED_PINGS = 1_000;

export class Outgoing {
  readonly #options: OutgoingOptions;
  #messages: ServerMessage[] = [];
  /** Of these messages. */
  #onTaken: (() => void)[] = [];
  #isFlushing = false;
  #isClosed = false;
  /** The last of the pings that came while earlier data was unsent. */
  #unansweredPing: Buffer | null = null;
  #unansweredPings = 0;

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  /** The client does not read what it is sent. */
  get isUnread(): boolean {
    const { socket, maxBufferedBytes } = this.#options;
    return socket.bufferedAmount > maxBufferedBytes;
  }

  /** `onTaken` is called when the message has left this process, or never will. */
  send(message: ServerMessage, onTaken: (() => void) | null = null): void {
    if (this.#isClosed) {
      onTaken?.();
      return;
    }
    this.#messages.push(message);
    if (onTaken !== null) this.#onTaken.push(onTaken);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    this.#options.env.defer(() => this.flush());
  }

  flush(): void {
    this.#isFlushing = false;
    if (this.#messages.length === 0) return;
    const { socket, onChange } = this.#options;
    const messages = this.#messages;
    const onTaken = this.#onTaken;
    this.#messages = [];
    this.#onTaken = [];
    for (let start = 0; start < messages.length; start += MESSAGES_PER_FRAME) {
      const frame = messages
        .slice(start, start + MESSAGES_PER_FRAME)
        .map((message) => JSON.stringify(message));
      const isLast = start + MESSAGES_PER_FRAME >= messages.length;
      socket.send(joinMessages(frame), isLast && onTaken.length > 0 ? this.#sentAll(onTaken) : this.#onSent);
    }
    onChange();
  }

  answerPing(data: Buffer): void {
    this.#unansweredPing = data;
    this.#unansweredPings += 1;
    if (this.#unansweredPings > MOST_UNANSWERED_PINGS) this.#options.socket.terminate();
    else this.#pong();
  }

  /** Nothing more is sent. */
  close(): void {
    this.#isClosed = true;
    this.#messages = [];
    for (const onTaken of this.#onTaken.splice(0)) onTaken();
  }

  #sentAll(onTaken: readonly (() => void)[]): () => void {
    return () => {
      for (const each of onTaken) each();
      this.#onSent();
    };
  }

  readonly #onSent = (): void => {
    this.#options.onChange();
    this.#pong();
  };

  #pong(): void {
    const { socket } = this.#options;
    if (this.#unansweredPing === null || socket.bufferedAmount > 0) return;
    const data = this.#unansweredPing;
    this.#unansweredPing = null;
    this.#unansweredPings = 0;
    socket.pong(data, false, this.#onSent);
  }
}
