/** Changes as server-sent events, one response a watcher. A browser's EventSource resumes by itself. */
import type { ServerResponse } from "node:http";
import type { Env, Timer } from "solehold/internal";
import { encodeSse, encodeWatchEvent, type WatchEvent } from "solehold/internal";
import { BoundedEventSink } from "./bounded-event-sink.ts";
import type { WatchHub } from "./watch-hub.ts";

const KEEP_ALIVE_MS = 15_000;

export interface WatchRequest {
  readonly scope: { readonly tenant: string; readonly prefix: string };
  /** The id of the last event that the client saw. */
  readonly after: string | null;
}

export class EventStreams {
  readonly #env: Env;
  readonly #hub: WatchHub;
  readonly #maxBufferedBytes: number;
  readonly #open = new Set<ServerResponse>();

  constructor(options: { env: Env; hub: WatchHub; maxBufferedBytes: number }) {
    this.#env = options.env;
    this.#hub = options.hub;
    this.#maxBufferedBytes = options.maxBufferedBytes;
  }

  /** Takes over the response until the client goes, or the server does. */
  serve(response: ServerResponse, { scope, after }: WatchRequest, headers: Record<string, string>): void {
    response.writeHead(200, {
      ...headers,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      connection: "close",
      "x-accel-buffering": "no",
    });
    const write = (event: WatchEvent): void => void response.write(encodeWatchEvent(event));
    const sink = new BoundedEventSink({
      env: this.#env,
      maxBufferedBytes: this.#maxBufferedBytes,
      buffered: () => response.writableLength,
      write,
      token: () => this.#hub.token,
    });
    // The first event says where the watch begins, so that a client can resume before the first change. What the client
    // sent is only repeated if it is a token: anything else could be more than one line.
    const start = after !== null && this.#hub.isToken(after) ? after : this.#hub.token;
    response.write(encodeSse({ id: start, event: "watching", data: "{}" }));
    const stop = this.#hub.subscribe(scope, after, (event) => sink.push(event));
    const keepAlive = this.#keepAlive(response);
    this.#open.add(response);
    response.on("close", () => {
      this.#open.delete(response);
      stop();
      sink.close();
      keepAlive.cancel();
    });
  }

  /** Clients come back by themselves, to another replica. */
  drain(): void {
    for (const response of this.#open) response.end();
  }

  #keepAlive(response: ServerResponse): Timer {
    let timer: Timer;
    const beat = (): void => {
      response.write(": alive\n\n");
      timer = this.#env.timer(KEEP_ALIVE_MS, beat);
    };
    timer = this.#env.timer(KEEP_ALIVE_MS, beat);
    return { cancel: () => timer.cancel() };
  }
}
