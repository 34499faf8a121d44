/**
 * The little that the store needs from a Redis client. A wire is one connection for its whole life: when
 * it ends it never comes back, so nothing is ever sent twice behind the store's back, and whoever holds
 * a wire knows that the server behind it has not been replaced.
 */
export type RedisArgument = string | Buffer;

export interface RedisWire {
  /**
   * Grows when the server that answers may have changed. Only a cluster's does: its wire stands for
   * connections to all its nodes.
   */
  readonly epoch: number;
  /** Sends at once. Rejects with the client's own error. */
  call(command: string, args: readonly RedisArgument[]): Promise<unknown>;
  /** Ends it; calls that wait are rejected. */
  close(): void;
}

export interface Subscription {
  close(): void;
  /** Rejects or never settles when the connection is dead. */
  ping(): Promise<unknown>;
}

export interface ConnectionLife {
  /** Gives up an attempt that has not succeeded; afterwards it has no effect. */
  readonly signal: AbortSignal;
  /** Called when the connection has ended, for whatever reason. */
  readonly onEnd: () => void;
}

export interface RedisDriver {
  /** Host and port, for messages. Never a password. */
  readonly address: string;
  readonly topology: "single" | "cluster";
  connect(life: ConnectionLife): Promise<RedisWire>;
  /** On a connection of its own. Resolves when the server has confirmed. */
  subscribe(
    channels: readonly string[],
    onMessage: (message: string) => void,
    life: ConnectionLife,
  ): Promise<Subscription>;
}
