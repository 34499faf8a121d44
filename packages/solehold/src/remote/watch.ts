/**
 * A watch over a server, across reconnects: after every gap the listener gets "reset", because it may have missed
 * something, and looks for itself.
 */
import { type Env, jittered, type Timer } from "../env/index.ts";
import { ABSENT, type StoreEvent, type StoreWatch, type WatchScope } from "../store/index.ts";
import type { RemoteTransport, ServerEvent } from "./transport.ts";
import { fieldsOf, recordOfEvent } from "./wire.ts";

const RECONNECT_MS = 250;

export async function followServer(
  transport: RemoteTransport,
  env: Env,
  scope: WatchScope,
  listener: (event: StoreEvent) => void,
): Promise<StoreWatch> {
  const parameters = new URLSearchParams({ prefix: scope.prefix });
  if (scope.tenant !== null) parameters.set("tenant", scope.tenant);
  const path = `/v1/watch?${parameters}`;
  let closed = false;
  let stream: { close(): void } | null = null;
  let timer: Timer | null = null;
  const onEnd = (): void => {
    stream = null;
    if (closed) return;
    timer = env.timer(jittered(env, RECONNECT_MS, 0.5), () => {
      open().then(() => listener({ kind: "reset" }), onEnd);
    });
  };
  const open = async (): Promise<void> => {
    stream = await transport.events(path, (event) => deliver(event, listener), onEnd);
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

function deliver(event: ServerEvent, listener: (event: StoreEvent) => void): void {
  const change = storeEventOf(event);
  if (change !== null) listener(change);
}

/** An event that cannot be read counts as missing. A server does not tell a record's version. */
function storeEventOf({ event, data }: ServerEvent): StoreEvent | null {
  if (event === "reset") return { kind: "reset" };
  try {
    const { tenant, name, lease } = fieldsOf(JSON.parse(data));
    if (typeof tenant !== "string" || typeof name !== "string") return null;
    const key = { tenant, name };
    if (event === "deleted") return { kind: "changed", key, stored: ABSENT };
    if (lease === null || lease === undefined) return { kind: "changed", key, stored: null };
    return { kind: "changed", key, stored: { kind: "found", record: recordOfEvent(lease), version: "" } };
  } catch {
    return { kind: "reset" };
  }
}
