/**
 * How the SDK reaches a server. A transport carries one request and brings one answer; it knows nothing
 * of leases, and never repeats anything by itself.
 */
import { StoreError } from "../store/index.ts";
import type { SseEvent, WireAnswer } from "../wire/index.ts";

export interface RemoteRequest {
  readonly method: "GET" | "POST";
  /** With the query, beginning with a slash. */
  readonly path: string;
  readonly body?: unknown;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** The lease that it is about: its home is asked first. */
  readonly routeBy?: string;
}

export type RemoteAnswer = WireAnswer;

export interface RemoteTransport {
  /** Rejects with a StoreError that says whether the request may have reached the server. */
  send(request: RemoteRequest): Promise<RemoteAnswer>;
  /** Calls back with each event of a server-sent stream until closed; resolves once it is open. */
  events(path: string, onEvent: (event: SseEvent) => void, onEnd: () => void): Promise<{ close(): void }>;
  close(): void;
}

/** Failures to connect happen before anything was sent; all others may have happened after. */
const BEFORE_SENDING = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
]);

export function transportError(error: unknown, where: string): StoreError {
  if (error instanceof StoreError) return error;
  const code = (error as { readonly code?: unknown } | null)?.code;
  const name = typeof code === "string" ? code : "";
  if (name.startsWith("CERT_") || name.includes("SELF_SIGNED") || name.startsWith("ERR_TLS")) {
    const message = `the certificate of ${where} is not trusted (${name}): set NODE_EXTRA_CA_CERTS to its authority`;
    return new StoreError("config", message, { outcome: "not-applied", cause: error });
  }
  if (BEFORE_SENDING.has(name)) {
    const message = `no Solehold server answers at ${where} (${name}): start it with 'solehold serve' or correct the URL`;
    return new StoreError("unreachable", message, { outcome: "not-applied", cause: error });
  }
  const message = `the connection to ${where} broke before the answer came (${name || String(error)})`;
  return new StoreError("unreachable", message, { outcome: "unknown", cause: error });
}
