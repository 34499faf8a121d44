/** The watches of one stream. A watch is announced first; its events begin after that answer. */
import type { Env, MessageId, WatchEvent } from "solehold/internal";
import { Type } from "typebox";
import { type Principal, readableScope } from "../access/principal.ts";
import type { Shares } from "../access/shares.ts";
import { ProblemError, refusal } from "../protocol/problem.ts";
import { scope } from "../protocol/schemas/fields.ts";
import { Closed, Text } from "../protocol/schemas/kinds.ts";
import { checkOf } from "../protocol/validation.ts";
import { BoundedEventSink } from "../watch/bounded-event-sink.ts";
import type { WatchHub } from "../watch/watch-hub.ts";

export interface StreamWatchesOptions {
  readonly env: Env;
  readonly hub: WatchHub;
  readonly shares: Shares;
  readonly maxBufferedBytes: number;
  /** Bytes that were sent and have not left yet. */
  buffered(): number;
  send(watch: MessageId, event: WatchEvent): void;
}

interface Addressed {
  readonly id: MessageId;
  readonly event: WatchEvent;
}

interface OpenWatch {
  begin(): void;
  stop(): void;
}

const check = checkOf(
  Closed({ ...scope, after: Type.Optional(Text("The token of the last event seen.")) }),
  "body",
);
const MAX_WATCHES = 1_000;

export class StreamWatches {
  readonly #options: StreamWatchesOptions;
  readonly #open = new Map<MessageId, OpenWatch>();
  /** One for all: they share the connection. */
  readonly #sink: BoundedEventSink<Addressed>;
  /** Those whose events were dropped. */
  readonly #behind = new Set<MessageId>();

  constructor(options: StreamWatchesOptions) {
    const { env, maxBufferedBytes, buffered, send } = options;
    this.#options = options;
    this.#sink = new BoundedEventSink({
      ...{ env, maxBufferedBytes, buffered },
      write: ({ id, event }) => send(id, event),
      onDropped: ({ id }) => this.#behind.add(id),
      onCaughtUp: () => this.#resetThoseBehind(),
    });
  }

  has(id: MessageId): boolean {
    return this.#open.has(id);
  }

  /** The token from which the events will follow. Throws a ProblemError. */
  open(id: MessageId, input: unknown, principal: Principal): string {
    const { after, ...target } = check(input);
    const scope = readableScope(principal, target);
    if (this.#open.size >= MAX_WATCHES) {
      throw new ProblemError(refusal("op", `may open at most ${MAX_WATCHES} watches: unwatch some`));
    }
    const free = this.#options.shares.take(principal, scope.tenant);
    const { hub } = this.#options;
    const { token } = hub;
    let unsubscribe = (): void => undefined;
    this.#open.set(id, {
      begin: () => {
        unsubscribe = hub.subscribe(scope, after ?? token, (event) => this.#sink.push({ id, event }));
      },
      stop: () => {
        unsubscribe();
        free();
      },
    });
    return token;
  }

  /** The answer is on its way: now the events. */
  begin(id: MessageId): void {
    this.#open.get(id)?.begin();
  }

  /** False when there is no such watch. */
  end(id: MessageId): boolean {
    this.#open.get(id)?.stop();
    this.#behind.delete(id);
    return this.#open.delete(id);
  }

  endAll(): void {
    for (const watch of this.#open.values()) watch.stop();
    this.#open.clear();
    this.#behind.clear();
    this.#sink.close();
  }

  #resetThoseBehind(): void {
    const { hub, send } = this.#options;
    const event: WatchEvent = { kind: "reset", token: hub.token };
    for (const id of this.#behind) send(id, event);
    this.#behind.clear();
  }
}
