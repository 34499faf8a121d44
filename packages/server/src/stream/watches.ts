/** The watches of one stream. A watch is announced first; its events begin after that answer. */
import type { Env, MessageId, WatchEvent } from "solehold/internal";
import { Type } from "typebox";
import { type Principal, readableScope } from "../access/principal.ts";
import type { Shares } from "../access/shares.ts";
import { ProblemError, refusal } from "../protocol/problem.ts";
import { Tenant } from "../protocol/schemas/fields.ts";
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

interface OpenWatch {
  begin(): void;
  stop(): void;
}

const WatchBody = Type.Object(
  {
    tenant: Type.Optional(Tenant),
    prefix: Type.Optional(Type.String()),
    after: Type.Optional(Type.String({ description: "The token of the last event seen." })),
  },
  { additionalProperties: false },
);
const check = checkOf(WatchBody, "body");
const MAX_WATCHES = 1_000;

export class StreamWatches {
  readonly #options: StreamWatchesOptions;
  readonly #open = new Map<MessageId, OpenWatch>();

  constructor(options: StreamWatchesOptions) {
    this.#options = options;
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
    const { hub, send, ...rest } = this.#options;
    const sink = new BoundedEventSink({ ...rest, write: (event) => send(id, event), token: () => hub.token });
    const { token } = hub;
    let unsubscribe = (): void => undefined;
    this.#open.set(id, {
      begin: () => {
        unsubscribe = hub.subscribe(scope, after ?? token, (event) => sink.push(event));
      },
      stop: () => {
        unsubscribe();
        sink.close();
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
    return this.#open.delete(id);
  }

  endAll(): void {
    for (const watch of this.#open.values()) watch.stop();
    this.#open.clear();
  }
}
