/** GET /v1/watch: changes as server-sent events. A browser's EventSource resumes by itself. */
import type { ServerResponse } from "node:http";
import type { Env, Timer } from "solehold";
import { encodeWatchEvent, type WatchEvent } from "solehold/internal";
import { type Static, Type } from "typebox";
import { assertAllowed, type Principal, tenantOf } from "../access/principal.ts";
import type { RouteSpec } from "../http/route.ts";
import { assertPrefix } from "../http/routes/leases.ts";
import { Tenant } from "../protocol/schemas/fields.ts";
import { checkQueryOf } from "../protocol/validation.ts";
import { Outlet } from "./bounded-event-sink.ts";
import type { WatchHub } from "./watch-hub.ts";

const WatchQuery = Type.Object(
  {
    tenant: Type.Optional(Tenant),
    prefix: Type.Optional(Type.String({ description: "Only names that begin with this." })),
    after: Type.Optional(
      Type.String({ description: "The id of the last event seen; the header Last-Event-ID does the same." }),
    ),
  },
  { additionalProperties: false },
);

export const WATCH_SPEC: Omit<RouteSpec, "handle"> = {
  method: "GET",
  path: "/v1/watch",
  operationId: "watchLeases",
  tag: "leases",
  summary: "Changes of leases, as they happen",
  description:
    "Server-sent events `changed`, `expired`, `deleted` with the lease as JSON data, and `reset`: some may be missing, list again. Events are hints; they may be doubled.",
  query: WatchQuery,
  replies: {
    200: { description: "An endless stream.", contentType: "text/event-stream", schema: Type.String() },
  },
  examples: [],
};

const checkQuery = checkQueryOf(WatchQuery);
const KEEP_ALIVE_MS = 15_000;

export interface WatchRequest extends Static<typeof WatchQuery> {
  readonly scope: { readonly tenant: string; readonly prefix: string };
}

/** What a request asks to watch, allowed. Throws a ProblemError. */
export function watchRequest(query: unknown, principal: Principal): WatchRequest {
  const input = checkQuery(query);
  const { prefix = "" } = input;
  const tenant = tenantOf(principal, input.tenant);
  assertAllowed(principal, "read", tenant, prefix);
  assertPrefix(prefix);
  return { ...input, scope: { tenant, prefix } };
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
    const outlet = new Outlet({
      env: this.#env,
      maxBufferedBytes: this.#maxBufferedBytes,
      buffered: () => response.writableLength,
      write,
      token: () => this.#hub.token,
    });
    // The first line tells where the watch begins, so that a client can resume before the first event.
    response.write(`id: ${after ?? this.#hub.token}\nevent: watching\ndata: {}\n\n`);
    const stop = this.#hub.subscribe(scope, after ?? null, (event) => outlet.push(event));
    const keepAlive = this.#keepAlive(response);
    this.#open.add(response);
    response.on("close", () => {
      this.#open.delete(response);
      stop();
      outlet.close();
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
