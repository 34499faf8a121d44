/**
 * A member of the cluster, spoken to in gRPC over Node's own HTTP/2. It needs no package, and of gRPC there is as
 * much as etcd needs: a question with one answer, and a stream of messages.
 *
 * Nothing here retries or waits: a request is sent once, and answered or lost.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { createSecureContext } from "node:tls";
import type { Env, Timer } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import { Deframer, framed } from "./framing.ts";
import type { EtcdTls } from "./options.ts";

/** What a call carries besides its message. */
export type CallFields = Readonly<Record<string, string>>;

type ResponseFields = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** What a stream tells its owner. `onEnd` comes once, and nothing after it. */
export interface StreamListener {
  onMessage(message: Uint8Array): void;
  onEnd(error: Error): void;
}

/** The server refuses to be asked more often than every 5 s whether it is still there. */
const KEEPALIVE_MS = 10_000;
const KEEPALIVE_TIMEOUT_MS = 5_000;
/** A page of records comes without waiting for leave to send more. */
const WINDOW_BYTES = 4 * 2 ** 20;
const OK = "0";
const UNIMPLEMENTED = "12";
const FIELDS: CallFields = { "content-type": "application/grpc", te: "trailers", "user-agent": "solehold" };

/** Throws when the files are not what they should be. */
export function assertUsable(tls: EtcdTls | null): void {
  if (tls === null) return;
  try {
    createSecureContext(givenOf(tls));
  } catch (cause) {
    const message = `etcd: ca, cert and key must be PEM files that belong together (${(cause as Error).message})`;
    throw new StoreError("config", message, { outcome: "not-applied", cause });
  }
}

export interface MemberOptions {
  readonly env: Env;
  /** `host:port`. */
  readonly address: string;
  readonly tls: EtcdTls | null;
}

export class MemberConnection {
  readonly address: string;
  readonly #env: Env;
  readonly #session: ClientHttp2Session;
  /** What is under way, each with how to end it early. */
  readonly #calls = new Set<(error: Error) => void>();
  #keepalive: Timer | null = null;
  #isConnected = false;
  /** Why nothing can be asked here any more. */
  #end: Error | null = null;

  constructor({ env, address, tls }: MemberOptions) {
    this.address = address;
    this.#env = env;
    const settings = { enablePush: false, initialWindowSize: WINDOW_BYTES };
    const session =
      tls === null
        ? connect(`http://${address}`, { settings })
        : connect(`https://${address}`, { settings, ...givenOf(tls) });
    session.once("connect", () => {
      // It may have been given up in the same turn.
      if (this.#end !== null) return;
      this.#isConnected = true;
      session.setLocalWindowSize(WINDOW_BYTES);
    });
    session.on("error", (error) => this.#close(error));
    // It stops: what is under way may still be answered, but nothing more is asked of it.
    session.on("goaway", () => {
      this.#isConnected = false;
    });
    session.on("close", () => this.#close(new Error("the connection was closed")));
    this.#session = session;
  }

  /** Whether a request would leave at once. */
  get isReady(): boolean {
    return this.#isConnected && this.#end === null;
  }

  request(path: string, message: Uint8Array, fields: CallFields): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      let reply: Buffer | null = null;
      const onMessage = (first: Buffer): void => {
        reply ??= first;
      };
      const { stream } = this.#open(path, fields, onMessage, (error) => {
        if (error !== null) reject(error);
        else if (reply === null) reject(new Error("the reply is empty"));
        else resolve(reply);
      });
      stream?.end(framed(message));
    });
  }

  /** Returns what ends the stream. */
  stream(path: string, first: Uint8Array, fields: CallFields, listener: StreamListener): () => void {
    const { stream, end } = this.#open(
      path,
      fields,
      (message) => listener.onMessage(message),
      (error) => listener.onEnd(error ?? new Error("the server ended the stream")),
    );
    stream?.write(framed(first));
    return () => end();
  }

  /** What is under way ends now, as an error. */
  close(): void {
    this.#close(new Error("the connection was closed"));
  }

  /** `onEnd` hears of the end once, null when the server said that all went well; `end` ends it unheard. */
  #open(
    path: string,
    fields: CallFields,
    onMessage: (message: Buffer) => void,
    onEnd: (error: Error | null) => void,
  ): { readonly stream: ClientHttp2Stream | null; end(): void } {
    if (this.#end !== null) {
      const error = this.#end;
      this.#env.defer(() => onEnd(error));
      return { stream: null, end: () => undefined };
    }
    const stream = this.#session.request({ ":method": "POST", ":path": path, ...FIELDS, ...fields });
    const deframer = new Deframer();
    let status: ResponseFields | null = null;
    const finish = (error: Error | null): void => {
      if (!this.#leave(finish)) return;
      if (!stream.closed && error !== null) stream.close(constants.NGHTTP2_CANCEL);
      onEnd(error);
    };
    stream.on("response", (response) => {
      const wrong = wrongResponse(response);
      if (wrong !== null) finish(wrong);
      else if (response["grpc-status"] !== undefined) finish(failureIn(response));
    });
    stream.on("data", (piece: Buffer) => {
      try {
        deframer.add(piece);
        for (let message = deframer.next(); message !== null; message = deframer.next())
          if (this.#calls.has(finish)) onMessage(message);
      } catch (error) {
        finish(error as Error);
      }
    });
    stream.on("trailers", (trailers) => {
      status = trailers;
      // Nothing comes after them, but something may lie here unread.
      if (stream.readableLength === 0) finish(failureIn(trailers));
    });
    stream.on("end", () =>
      finish(status === null ? new Error("the server ended the stream") : failureIn(status)),
    );
    stream.on("error", finish);
    stream.on("close", () => {
      // Nearly always it has ended before, and an error that nobody sees costs more than all of this.
      if (this.#calls.has(finish)) finish(new Error(`the stream was closed (NGHTTP2 ${stream.rstCode})`));
    });
    this.#enter(finish);
    const end = (): void => {
      if (this.#leave(finish)) stream.close(constants.NGHTTP2_CANCEL);
    };
    return { stream, end };
  }

  #enter(call: (error: Error) => void): void {
    // An idle connection does not keep the process from ending.
    if (this.#calls.size === 0) this.#session.ref();
    this.#calls.add(call);
    this.#keepalive ??= this.#nextKeepalive();
  }

  /** False when it had ended before. */
  #leave(call: (error: Error) => void): boolean {
    const wasThere = this.#calls.delete(call);
    if (wasThere && this.#calls.size === 0 && this.#end === null) this.#session.unref();
    return wasThere;
  }

  /** While something is under way, a server that is gone without a word is noticed. */
  #nextKeepalive(): Timer {
    return this.#env.timer(KEEPALIVE_MS, () => {
      this.#keepalive = null;
      if (this.#end !== null || this.#calls.size === 0) return;
      const silent = this.#env.timer(KEEPALIVE_TIMEOUT_MS, () =>
        this.#close(new Error("the server did not answer a ping")),
      );
      this.#session.ping(() => silent.cancel());
      this.#keepalive = this.#nextKeepalive();
    });
  }

  #close(error: Error): void {
    if (this.#end !== null) return;
    this.#end = error;
    this.#keepalive?.cancel();
    for (const call of [...this.#calls]) call(error);
    this.#session.destroy();
  }
}

function givenOf({ ca, cert, key }: EtcdTls): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
  return {
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
  };
}

/** Null for an answer in gRPC. */
function wrongResponse({ ":status": status, "content-type": type }: ResponseFields): Error | null {
  if (status !== 200) return new Error(`HTTP status code ${String(status)}`);
  if (String(type).startsWith("application/grpc")) return null;
  return new Error(`HTTP status code 200, but the content is ${String(type)}`);
}

/** What the server says of the call at its end. */
function failureIn(fields: ResponseFields): Error | null {
  const status = String(fields["grpc-status"]);
  if (status === OK) return null;
  const name = status === UNIMPLEMENTED ? "UNIMPLEMENTED" : `status ${status}`;
  return new Error(`${name}: ${unescaped(String(fields["grpc-message"] ?? ""))}`);
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
