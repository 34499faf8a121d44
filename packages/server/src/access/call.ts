/** One request on its way: who asks, under which trace, since when, and whether its connection is still there. */
import type { Principal } from "./principal.ts";

export interface Connection {
  /** Nobody will read the answer any more. */
  isGone(): boolean;
  /** The caller said that it does not want the answer any more, and will not repeat the request. */
  isCancelled(): boolean;
  /** Calls back when the connection goes before the answer was sent. Returns how to stop that. */
  onGone(listener: () => void): () => void;
}

export interface Call {
  readonly principal: Principal;
  /** 32 hexadecimal digits (W3C trace context). */
  readonly traceId: string;
  /** When the request arrived, on the server's monotonic clock. */
  readonly receivedMs: number;
  readonly connection: Connection;
}
