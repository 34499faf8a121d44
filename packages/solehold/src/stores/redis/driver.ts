/**
 * The little that the store needs of a Redis client. A connection is one socket for its whole life: once it has ended
 * it never comes back, so nothing is sent twice behind the store's back, and the server behind it stays the same.
 */
export interface RedisConnection {
  /** Sends at once. Rejects with the client's own error. */
  call(command: string, args: readonly (string | Buffer)[]): Promise<unknown>;
  /** Resolves when the server has confirmed it. */
  subscribe(channel: string): Promise<unknown>;
  /** Ends it; calls under way are rejected. Never throws. */
  close(): void;
}

export interface ConnectionEvents {
  /** The connection has ended, for whatever reason. May be called more than once. */
  readonly onEnd: () => void;
  readonly onMessage: (channel: string, message: string) => void;
}

export interface RedisDriver {
  /** Host and port, for messages. Never a password. */
  readonly address: string;
  /** The address is looked up anew each time. The signal gives up an attempt that has not succeeded yet. */
  connect(events: ConnectionEvents, signal: AbortSignal): Promise<RedisConnection>;
}
