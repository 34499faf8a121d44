/**
 * One connection for its whole life: when it ends it never comes back, so nothing is ever sent twice behind
 * the store's back, and whoever holds a wire knows that the server behind it has not been restarted.
 *
 * Requests of one turn leave together (the client flushes at the end of the turn), and each is answered on
 * its own. There are no timers here: whoever waits too long ends the wire, which fails all that it awaits.
 */
import type { NatsClient, NatsHeaders, NatsMessage, NatsPackage } from "./client.ts";

const NOTHING = new Uint8Array(0);

interface Pending {
  readonly subject: string;
  readonly resolve: (message: NatsMessage) => void;
  readonly reject: (error: unknown) => void;
}

export interface WireOptions {
  readonly client: NatsClient;
  readonly headers: NatsPackage["headers"];
  /** A subject of its own, below which replies arrive. */
  readonly inbox: string;
}

export class NatsWire {
  readonly #client: NatsClient;
  readonly #headers: NatsPackage["headers"];
  readonly #inbox: string;
  readonly #pending = new Map<string, Pending>();
  readonly #endings = new Set<() => void>();
  #number = 0;
  #ended: unknown = null;

  constructor({ client, headers, inbox }: WireOptions) {
    this.#client = client;
    this.#headers = headers;
    this.#inbox = inbox;
    client.subscribe(`${inbox}.*`, { callback: (error, message) => this.#receive(error, message) });
    void this.#followStatus();
    const ended = (): void => this.end(new Error("the connection was lost"));
    client.closed().then(ended, ended);
  }

  /** Of this run of the server. */
  get serverId(): string {
    return this.#client.info?.server_id ?? "";
  }

  get serverVersion(): string {
    return this.#client.info?.version ?? "";
  }

  get isOpen(): boolean {
    return this.#ended === null;
  }

  /** Rejects with the client's own error, or with what ended the wire. */
  request(
    subject: string,
    payload: Uint8Array | string = NOTHING,
    headers: Readonly<Record<string, string>> | null = null,
  ): Promise<NatsMessage> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== null) return reject(this.#ended);
      this.#number += 1;
      const token = this.#number.toString(36);
      const reply = `${this.#inbox}.${token}`;
      this.#pending.set(token, { subject, resolve, reject });
      try {
        const options = headers === null ? { reply } : { reply, headers: this.#headersFrom(headers) };
        this.#client.publish(subject, payload, options);
      } catch (error) {
        this.#pending.delete(token);
        reject(error);
      }
    });
  }

  /** Sends without waiting for anything. */
  tell(subject: string): void {
    if (this.isOpen) this.#client.publish(subject, NOTHING, {});
  }

  /** A subject to be delivered to, which `onMessage` hears until the returned function is called. */
  listen(onMessage: (message: NatsMessage) => void): { readonly subject: string; stop(): void } {
    this.#number += 1;
    const subject = `${this.#inbox}.news.${this.#number.toString(36)}`;
    const subscription = this.#client.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) onMessage(message);
      },
    });
    const stop = (): void => {
      if (this.isOpen) subscription.unsubscribe();
    };
    return { subject, stop };
  }

  /** Calls back once, when the wire has ended. */
  onEnd(callback: () => void): void {
    if (this.isOpen) this.#endings.add(callback);
    else callback();
  }

  /** Everything that waits fails with `reason`. Ending twice is fine. */
  end(reason: unknown): void {
    if (this.#ended !== null) return;
    this.#ended = reason;
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of waiting) reject(reason);
    this.#client.close().catch(() => undefined);
    for (const callback of this.#endings) callback();
  }

  #headersFrom(fields: Readonly<Record<string, string>>): NatsHeaders {
    const headers = this.#headers();
    for (const name in fields) headers.append(name, fields[name] ?? "");
    return headers;
  }

  #receive(error: Error | null, message: NatsMessage): void {
    // Only a subscription that is not permitted ends this way: without replies nothing works.
    if (error !== null) {
      this.end(error);
      return;
    }
    const token = message.subject.slice(this.#inbox.length + 1);
    const pending = this.#pending.get(token);
    if (pending === undefined) return;
    this.#pending.delete(token);
    pending.resolve(message);
  }

  /** A request that is not permitted gets no reply, only a word on the side. */
  async #followStatus(): Promise<void> {
    for await (const { type, error } of this.#client.status()) {
      if (type !== "error") continue;
      const { subject } = (error ?? {}) as { readonly subject?: unknown };
      for (const [token, pending] of this.#pending) {
        if (pending.subject !== subject) continue;
        this.#pending.delete(token);
        pending.reject(error);
      }
    }
  }
}
