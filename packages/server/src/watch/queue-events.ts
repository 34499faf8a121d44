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
import type { FanOut } from "./fan-out.ts";
import type { EventSource } from "./sse.ts";

const GATHER_MS = 100;

export interface QueueEventsOptions {
  readonly env: Env;
  readonly queue: WaitQueue;
  /** Changes of its lengths. */
  readonly lengths: FanOut<QueueLength>;
  readonly scope: { readonly tenant: string; readonly prefix: string };
  readonly maxBufferedBytes: number;
}

export function queueEvents(options: QueueEventsOptions): EventSource {
  const { env, queue, lengths, scope, maxBufferedBytes } = options;
  return (writer) => {
    const changed = new Map<string, number>();
    let timer: Timer | null = null;
    const flush = (): void => {
      timer = null;
      if (writer.buffered() > maxBufferedBytes) {
        plan();
        return;
      }
      const { tenant } = scope;
      const texts = [...changed].map(([name, waiting]) =>
        encodeQueueEvent({ key: { tenant, name }, waiting }),
      );
      changed.clear();
      writer.write(texts.join(""));
    };
    const plan = (): void => {
      timer ??= env.timer(GATHER_MS, flush);
    };
    const note = ({ key, waiting }: QueueLength): void => {
      if (!isInScope(scope, key)) return;
      changed.set(key.name, waiting);
      plan();
    };
    const noteAll = (): void => {
      for (const length of queue.lengths()) note(length);
    };
    noteAll();
    const stop = lengths.add(scope.tenant, { push: note, missed: noteAll });
    return () => {
      stop();
      timer?.cancel();
    };
  };
}
