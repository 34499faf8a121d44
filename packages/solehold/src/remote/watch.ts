/**
 * A watch over a server, across reconnects: after every gap the listener gets "reset", because it may have missed
 * something, and looks for itself.
 */
import { type Env, jittered, type Timer } from "../env/index.ts";
import type { QueueListener } from "../executor/index.ts";
import type { StoreEvent, StoreWatch, WatchScope } from "../store/index.ts";
import { decodeQueueEvent, decodeWatchEvent, type SseEvent } from "../wire/index.ts";
import type { RemoteTransport } from "./transport.ts";

const RECONNECT_MS = 250;

export async function watchServer(
  transport: RemoteTransport,
  env: Env,
  scope: WatchScope,
  listener: (event: StoreEvent) => void,
  onQueue?: QueueListener,
): Promise<StoreWatch> {
  const parameters = new URLSearchParams({ prefix: scope.prefix });
  if (scope.tenant !== null) parameters.set("tenant", scope.tenant);
  if (onQueue !== undefined) parameters.set("queues", "true");
  const path = `/v1/watch?${parameters}`;
  let closed = false;
  let stream: { close(): void } | null = null;
  let timer: Timer | null = null;
  const onEvent = (event: SseEvent): void => {
    const length = decodeQueueEvent(event);
    if (length !== null) onQueue?.({ kind: "length", ...length });
    const change = decodeWatchEvent(event);
    if (change !== null) listener(change);
  };
  const onEnd = (): void => {
    stream = null;
    if (closed) return;
    onQueue?.({ kind: "reset" });
    timer = env.timer(jittered(env, RECONNECT_MS, 0.5), () => {
      open().then(() => listener({ kind: "reset" }), onEnd);
    });
  };
  const open = async (): Promise<void> => {
    stream = await transport.events(path, onEvent, onEnd);
    if (closed) stream.close();
  };
  await open();
  return {
    close: async () => {
      closed = true;
      timer?.cancel();
      stream?.close();
    },
  };
}
