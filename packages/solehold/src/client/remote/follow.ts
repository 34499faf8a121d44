/**
 * Following a server's news, over reconnects: after every gap the listener is told that it may have missed
 * something ("reset"), and looks for itself.
 */
import type { LeaseRecord } from "../../core/index.ts";
import { type Env, jittered, type Timer } from "../../env/index.ts";
import type { StoreEvent, StoreWatch, WatchScope } from "../../store/index.ts";
import type { RemoteTransport, ServerEvent } from "./transport.ts";
import { fieldsOf, recordOfNews } from "./wire.ts";

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
  const news = newsOf(event);
  if (news !== null) listener(news);
}

/** News that cannot be read is treated as missing news. */
function newsOf({ event, data }: ServerEvent): StoreEvent | null {
  if (event === "reset") return { kind: "reset" };
  try {
    const fields = fieldsOf(JSON.parse(data));
    const { tenant, name, lease } = fields;
    if (typeof tenant !== "string" || typeof name !== "string") return null;
    const record: LeaseRecord | null = lease === null || lease === undefined ? null : recordOfNews(lease);
    return { kind: "changed", key: { tenant, name }, record };
  } catch {
    return { kind: "reset" };
  }
}
