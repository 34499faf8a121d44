/**
 * The lengths of wait queues, as events: those that somebody waits in at the start, then changes. Changes of one key that
 * follow each other quickly are one event, and none is written while the watcher has too much to read already.
 */
import {
  type Env,
  encodeQueueEvent,
  isInScope,
  type QueueLength,
  type Timer,
  type WaitQueue,
} from "solehold/internal";
import type { EventSource } from "./sse.ts";

const GATHER_MS = 100;

export interface QueueEventsOptions {
  readonly env: Env;
  readonly queue: WaitQueue;
  readonly scope: { readonly tenant: string; readonly prefix: string };
  readonly maxBufferedBytes: number;
}

export function queueEvents({ env, queue, scope, maxBufferedBytes }: QueueEventsOptions): EventSource {
  return (writer) => {
    const changed = new Map<string, number>();
    let timer: Timer | null = null;
    const flush = (): void => {
      timer = null;
      if (writer.buffered() > maxBufferedBytes) {
        plan();
        return;
      }
      for (const [name, waiting] of changed) {
        writer.write(encodeQueueEvent({ key: { tenant: scope.tenant, name }, waiting }));
      }
      changed.clear();
    };
    const plan = (): void => {
      timer ??= env.timer(GATHER_MS, flush);
    };
    const note = ({ key, waiting }: QueueLength): void => {
      if (!isInScope(scope, key)) return;
      changed.set(key.name, waiting);
      plan();
    };
    for (const length of queue.lengths()) note(length);
    const stop = queue.onLength(note);
    return () => {
      stop();
      timer?.cancel();
    };
  };
}
