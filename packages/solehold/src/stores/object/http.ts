/**
 * One HTTP request and its whole reply, with a deadline. Connections are kept. Nothing is retried and no
 * redirect is followed: the caller must know what became of its one request.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Env } from "../../env/index.ts";

export interface HttpRequest {
  readonly method: "GET" | "PUT" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  readonly dateMs: number | null;
}

/** There was no whole reply. `sent` says whether the request can have reached the server. */
export class HttpFailure extends Error {
  override readonly name = "HttpFailure";
  readonly reason: "timeout" | "closed" | "connection";
  readonly sent: "no" | "perhaps";

  constructor(reason: HttpFailure["reason"], sent: HttpFailure["sent"], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.sent = sent;
  }
}

const MAX_SOCKETS = 64;
/** A lease is a few hundred bytes; a page of a listing far less than this. */
const MAX_REPLY_BYTES = 16 * 2 ** 20;
/** The connection was never made, so nothing was sent. */
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export class HttpClient {
  readonly #env: Env;
  readonly #timeoutMs: number;
  readonly #agents = {
    "http:": new HttpAgent({ keepAlive: true, maxSockets: MAX_SOCKETS }),
    "https:": new HttpsAgent({ keepAlive: true, maxSockets: MAX_SOCKETS }),
  };

  constructor(env: Env, timeoutMs: number) {
    this.#env = env;
    this.#timeoutMs = timeoutMs;
  }

  send({ method, url, headers, body }: HttpRequest): Promise<HttpReply> {
    const secure = url.protocol === "https:";
    const agent = this.#agents[secure ? "https:" : "http:"];
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { "content-length": String(body.byteLength) };
      const options = { method, agent, headers: { ...headers, ...length } };
      const request = (secure ? httpsRequest : httpRequest)(url, options);
      const timer = this.#env.timer(
        this.#timeoutMs,
        () => {
          const message = `no answer within ${this.#timeoutMs} ms`;
          request.destroy(new HttpFailure("timeout", "perhaps", message));
        },
        { keepAlive: "yes" },
      );
      const fail = (error: Error): void => {
        timer.cancel();
        reject(failureOf(error));
      };
      request.once("error", fail);
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

function failureOf(error: Error): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const { code } = error as NodeJS.ErrnoException;
  const codes =
    error instanceof AggregateError
      ? error.errors.map((each) => (each as NodeJS.ErrnoException).code)
      : [code];
  const unsent = codes.length > 0 && codes.every((each) => each !== undefined && NOT_SENT.has(each));
  const tls = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|EPROTO|ERR_SSL|ERR_TLS/.test(String(code));
  const message = [...new Set([codes[0], error.message])].filter((part) => part).join(" ");
  return new HttpFailure("connection", unsent || tls ? "no" : "perhaps", message, error);
}
