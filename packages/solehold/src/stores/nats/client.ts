/**
 * The little that the store needs from the NATS client. Structural, so that whoever uses another store needs
 * neither the package nor its types.
 */
export interface NatsHeaders {
  /** Of a status message, such as 404 or 503; otherwise 0. */
  readonly code: number;
  get(name: string): string;
  append(name: string, value: string): void;
}

export interface NatsMessage {
  readonly subject: string;
  readonly reply?: string;
  readonly data: Uint8Array;
  readonly headers?: NatsHeaders;
}

export interface NatsSubscription {
  unsubscribe(): void;
}

export interface NatsClient {
  /** `server_id` is drawn anew each time a server starts. */
  readonly info?: { readonly server_id: string; readonly version: string };
  publish(
    subject: string,
    payload: Uint8Array | string,
    options: { readonly reply?: string; readonly headers?: NatsHeaders },
  ): void;
  subscribe(
    subject: string,
    options: { readonly callback: (error: Error | null, message: NatsMessage) => void },
  ): NatsSubscription;
  status(): AsyncIterable<{ readonly type: string; readonly error?: unknown }>;
  /** Settles when the connection has ended for good. */
  closed(): Promise<unknown>;
  close(): Promise<void>;
}

export interface NatsPackage {
  connect(options: Readonly<Record<string, unknown>>): Promise<NatsClient>;
  headers(): NatsHeaders;
}
