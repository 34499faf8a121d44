/** Responses that never end: server-sent events, one response a watcher. A browser's EventSource resumes by itself. */
import type { ServerResponse } from "node:http";
import type { Env, Timer } from "solehold/internal";

const KEEP_ALIVE_MS = 15_000;

/** Where the events of one watcher go. */
export interface EventWriter {
  /** Bytes that were written and have not left yet. */
  buffered(): number;
  write(text: string): void;
}

/** Begins to write events; returns how to stop. */
export type EventSource = (writer: EventWriter) => () => void;

export class EventStreams {
  readonly #env: Env;
  readonly #open = new Set<ServerResponse>();

  constructor(env: Env) {
    this.#env = env;
  }

  /** Takes over the response until the client goes, or the server does. */
  serve(response: ServerResponse, headers: Record<string, string>, source: EventSource): void {
    response.writeHead(200, {
      ...headers,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      connection: "close",
      "x-accel-buffering": "no",
    });
    const stop = source({
      buffered: () => response.writableLength,
      write: (text) => void response.write(text),
    });
    const keepAlive = this.#keepAlive(response);
    this.#open.add(response);
    response.on("close", () => {
      this.#open.delete(response);
      stop();
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
