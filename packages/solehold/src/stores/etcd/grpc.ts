/** The optional package @grpc/grpc-js: as much of it as is used, and a member of the cluster spoken to through it. */
import { StoreError } from "../contract.ts";
import type { EtcdTls } from "./options.ts";

export interface GrpcMetadata {
  set(name: string, value: string): void;
}

interface GrpcCall {
  cancel(): void;
}

interface GrpcStream extends GrpcCall {
  write(message: Uint8Array): void;
  on(event: "data", listener: (message: Uint8Array) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
}

type Codec = (bytes: Buffer) => Buffer;

interface GrpcClient {
  makeUnaryRequest(
    path: string,
    serialize: Codec,
    deserialize: Codec,
    request: Buffer,
    metadata: GrpcMetadata,
    callback: (error: Error | null, reply?: Buffer) => void,
  ): GrpcCall;
  makeBidiStreamRequest(
    path: string,
    serialize: Codec,
    deserialize: Codec,
    metadata: GrpcMetadata,
  ): GrpcStream;
  getChannel(): { getConnectivityState(tryToConnect: boolean): number };
  close(): void;
}

export interface GrpcPackage {
  readonly Client: new (
    address: string,
    credentials: never,
    options: Readonly<Record<string, number>>,
  ) => GrpcClient;
  readonly Metadata: new () => GrpcMetadata;
  readonly credentials: {
    createInsecure(): unknown;
    createSsl(ca: Buffer | null, key: Buffer | null, cert: Buffer | null): unknown;
  };
}

export async function loadGrpc(): Promise<GrpcPackage> {
  try {
    return (await import("@grpc/grpc-js")) as unknown as GrpcPackage;
  } catch (cause) {
    const message = "etcd: the package @grpc/grpc-js is missing: run `npm install @grpc/grpc-js`";
    throw new StoreError("config", message, { outcome: "not-applied", cause });
  }
}

export function credentialsFor(grpc: GrpcPackage, tls: EtcdTls | null): unknown {
  if (tls === null) return grpc.credentials.createInsecure();
  try {
    return grpc.credentials.createSsl(tls.ca, tls.key, tls.cert);
  } catch (cause) {
    const message = `etcd: ca, cert and key must be PEM files that belong together (${(cause as Error).message})`;
    throw new StoreError("config", message, { outcome: "not-applied", cause });
  }
}

const READY = 2;
/** The server refuses to be asked more often than every 5 s whether it is still there. */
const KEEPALIVE_MS = 10_000;
const KEEPALIVE_TIMEOUT_MS = 5_000;
const MAX_REPLY_BYTES = 64 * 2 ** 20;

const CHANNEL_OPTIONS: Readonly<Record<string, number>> = {
  // A request is sent once: whether it may be sent again is decided above, by what is known of its fate.
  "grpc.enable_retries": 0,
  "grpc.enable_http_proxy": 0,
  // A connection of our own, so that giving it up ends it and nobody else's.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.service_config_disable_resolution": 1,
  "grpc.keepalive_time_ms": KEEPALIVE_MS,
  "grpc.keepalive_timeout_ms": KEEPALIVE_TIMEOUT_MS,
  "grpc.max_receive_message_length": MAX_REPLY_BYTES,
};

/** What a stream tells its owner. `onEnd` comes once, and nothing after it. */
export interface StreamListener {
  onMessage(message: Uint8Array): void;
  onEnd(error: Error): void;
}

/** A connection to one member. Nothing here retries or waits: a request is sent, and answered or lost. */
export class MemberConnection {
  readonly address: string;
  readonly #client: GrpcClient;
  readonly #calls = new Set<GrpcCall>();
  #closed = false;

  constructor(grpc: GrpcPackage, address: string, credentials: unknown) {
    this.address = address;
    this.#client = new grpc.Client(address, credentials as never, CHANNEL_OPTIONS);
  }

  /** Whether a request would leave at once. */
  get isReady(): boolean {
    return !this.#closed && this.#client.getChannel().getConnectivityState(false) === READY;
  }

  request(path: string, message: Buffer, metadata: GrpcMetadata): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const call = this.#client.makeUnaryRequest(path, same, same, message, metadata, (error, reply) => {
        this.#calls.delete(call);
        if (reply === undefined) reject(error ?? new Error("the reply is empty"));
        else resolve(reply);
      });
      this.#calls.add(call);
    });
  }

  /** Returns what ends the stream. */
  stream(path: string, first: Uint8Array, metadata: GrpcMetadata, listener: StreamListener): () => void {
    const call = this.#client.makeBidiStreamRequest(path, same, same, metadata);
    this.#calls.add(call);
    const end = (error: Error): void => {
      if (this.#calls.delete(call)) listener.onEnd(error);
    };
    call.on("error", end);
    call.on("end", () => end(new Error("the server ended the stream")));
    call.on("data", (message) => {
      if (this.#calls.has(call)) listener.onMessage(message);
    });
    call.write(first);
    return () => {
      this.#calls.delete(call);
      call.cancel();
    };
  }

  /** What is under way ends now, as an error. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const call of this.#calls) call.cancel();
    this.#client.close();
  }
}

function same(bytes: Buffer): Buffer {
  return bytes;
}
