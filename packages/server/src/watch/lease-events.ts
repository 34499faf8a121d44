/** The events of GET /v1/watch: changes of leases, and how many wait for them where that was asked for. */
import {
  type Env,
  encodeSse,
  encodeWatchEvent,
  type QueueLength,
  type WaitQueue,
  type WatchEvent,
} from "solehold/internal";
import { BoundedEventSink } from "./bounded-event-sink.ts";
import type { FanOut } from "./fan-out.ts";
import { queueEvents } from "./queue-events.ts";
import type { EventSource } from "./sse.ts";
import type { WatchHub } from "./watch-hub.ts";

export interface WatchRequest {
  readonly scope: { readonly tenant: string; readonly prefix: string };
  /** The id of the last event that the client saw. */
  readonly after: string | null;
  /** Whether it also wants the lengths of wait queues. */
  readonly queues: boolean;
}

export interface LeaseEventsOptions {
  readonly env: Env;
  readonly hub: WatchHub;
  readonly queue: WaitQueue;
  readonly lengths: FanOut<QueueLength>;
  readonly maxBufferedBytes: number;
}

export function leaseEvents(
  options: LeaseEventsOptions,
  { scope, after, queues }: WatchRequest,
): EventSource {
  const { env, hub, maxBufferedBytes } = options;
  return (writer) => {
    const write = (event: WatchEvent): void => writer.write(encodeWatchEvent(event));
    const sink = new BoundedEventSink<WatchEvent>({
      env,
      maxBufferedBytes,
      buffered: () => writer.buffered(),
      write,
      onDropped: () => undefined,
      onCaughtUp: () => write({ kind: "reset", token: hub.token }),
    });
    // The first event says where the watch begins, so that a client can resume before the first change. What the client
    // sent is only repeated if it is a token: anything else could be more than one line.
    const start = after !== null && hub.isToken(after) ? after : hub.token;
    writer.write(encodeSse({ id: start, event: "watching", data: "{}" }));
    const stop = hub.subscribe(scope, after, (event) => sink.push(event));
    const stopQueues = queues ? queueEvents({ ...options, scope })(writer) : () => undefined;
    return () => {
      stop();
      stopQueues();
      sink.close();
    };
  };
}
