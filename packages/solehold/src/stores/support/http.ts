/**
 * One HTTP request and its whole reply, with a deadline. Connections are kept. Nothing is retried and no
 * redirect is followed: the caller must know what became of its one request.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Env } from "../../env/index.ts";
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import { type Diagnosis, errorText, noConnection } from "./failures.ts";

export interface HttpRequest {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  /** The Date header; null when there was none. */
  readonly dateMs: number | null;
}

export interface HttpOptions {
  /** Begins the messages: "S3 bucket 'x' at http://host". */
  readonly place: string;
  readonly env: Env;
  readonly timeoutMs: number;
  readonly maxSockets: number;
}

/** A lease is a few hundred bytes; a page of a listing far less than this. */
const MAX_REPLY_BYTES = 16 * 2 ** 20;
const NO_ANSWER: Diagnosis = [/^/, "unreachable", "it does not answer: check host, port and network"];
const DIAGNOSES: readonly Diagnosis[] = [
  ...noConnection("the server"),
  [/EPROTO|ERR_SSL|WRONG_VERSION/, "config", "it does not speak TLS on that port: use http: in the endpoint"],
];

export class HttpClient {
  readonly #options: HttpOptions;
  readonly #agents: { readonly "http:": HttpAgent; readonly "https:": HttpsAgent };

  constructor(options: HttpOptions) {
    const pool = { keepAlive: true, maxSockets: options.maxSockets };
    this.#options = options;
    this.#agents = { "http:": new HttpAgent(pool), "https:": new HttpsAgent(pool) };
  }

  /** Rejects with a StoreError when there was no whole reply; it is "not-applied" only if nothing was sent. */
  send({ method, url, headers, body }: HttpRequest): Promise<HttpReply> {
    const { place, env, timeoutMs } = this.#options;
    const secure = url.startsWith("https:");
    return new Promise((resolve, reject) => {
      const more =
        body === undefined ? { "cache-control": "no-cache" } : { "content-length": String(body.byteLength) };
      const agent = this.#agents[secure ? "https:" : "http:"];
      const options = { method, agent, headers: { ...headers, ...more } };
      const request = (secure ? httpsRequest : httpRequest)(url, options);
      let outcome: FailedOutcome = "not-applied";
      const onConnected = (): void => {
        outcome = "unknown";
      };
      // Nothing is written before there is a connection, with TLS before both sides have agreed on it.
      request.once("socket", (socket) => {
        if (socket.connecting) socket.once(secure ? "secureConnect" : "connect", onConnected);
        else onConnected();
      });
      let kind: "timeout" | "unreachable" = "unreachable";
      const onDeadline = (): void => {
        kind = "timeout";
        request.destroy(new Error(`no answer within ${timeoutMs} ms`));
      };
      const timer = env.timer(timeoutMs, onDeadline, { keepAlive: true });
      const fail = (cause: Error): void => {
        timer.cancel();
        const text = errorText(cause);
        const [, , advice] = DIAGNOSES.find(([pattern]) => pattern.test(text)) ?? NO_ANSWER;
        reject(new StoreError(kind, `${place}: ${advice} (${text})`, { outcome, cause }));
      };
      request.on("error", fail);
      request.once("response", (response) => {
        collect(response).then((reply) => {
          timer.cancel();
          resolve(reply);
        }, fail);
      });
      request.end(body);
    });
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }
}

async function collect(response: IncomingMessage): Promise<HttpReply> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_REPLY_BYTES) throw new Error(`the reply is larger than ${MAX_REPLY_BYTES} bytes`);
    chunks.push(chunk);
  }
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
  );
  const dateMs = Date.parse(headers.date ?? "");
  return {
    status: response.statusCode ?? 0,
    headers,
    body: Buffer.concat(chunks),
    dateMs: Number.isSafeInteger(dateMs) ? dateMs : null,
  };
}
