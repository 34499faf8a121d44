/** One request on its way: who asks, under which trace, since when, and whether its connection is still there. */
import type { CallContext, Recipient } from "solehold/internal";
import type { Principal } from "./principal.ts";

/** It is also the way back to the caller, who may be gone before the answer. */
export interface Call extends Recipient {
  readonly principal: Principal;
  /** 32 hexadecimal digits (W3C trace context). */
  readonly traceId: string;
  /** The network address that the request came from; empty when it is not known. */
  readonly address: string;
  /** When the request arrived, on the server's monotonic clock. */
  readonly receivedMs: number;
  /** How much of the time since then it waited for its turn. Set by the command that waits. */
  waitedMs: number;
  /** Calls back once when the answer has left this process, or never will. */
  onTaken(listener: () => void): void;
}

/** What an executor gets of it. */
export function contextOf({ traceId, principal, address }: Call): CallContext {
  return { traceId, caller: principal.id, address };
}
