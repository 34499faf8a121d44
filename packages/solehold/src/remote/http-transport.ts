/** Plain HTTP with connections kept alive: works through every proxy, one request per command. */
import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import type { Env } from "../env/index.ts";
import { StoreError } from "../store/index.ts";
import { type SseEvent, SseParser } from "../wire/index.ts";
import { type RemoteAnswer, type RemoteRequest, type RemoteTransport, transportError } from "./transport.ts";

export interface HttpTransportOptions {
  readonly url: URL;
  readonly env: Env;
  readonly apiKey?: string;
}

const MAX_CONNECTIONS = 64;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export class HttpTransport implements RemoteTransport {
  readonly #options: HttpTransportOptions;
  readonly #agent: Agent;
  readonly #where: string;
  readonly #streams = new Set<ClientRequest>();

  constructor(options: HttpTransportOptions) {
    this.#options = options;
    this.#where = options.url.origin;
    const agentOptions = { keepAlive: true, maxSockets: MAX_CONNECTIONS };
    this.#agent = options.url.protocol === "https:" ? new TlsAgent(agentOptions) : new Agent(agentOptions);
  }

  async send({ method, path, body, timeoutMs, signal }: RemoteRequest): Promise<RemoteAnswer> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const outgoing = this.#open(method, path, payload);
    const giveUp = (error: Error): void => void outgoing.destroy(error);
    const onTimeout = (): void => giveUp(this.#silent(timeoutMs));
    const onAbort = (): void =>
      giveUp(new StoreError("closed", "the caller gave up", { outcome: "unknown" }));
    const timer = this.#options.env.timer(timeoutMs, onTimeout, { keepAlive: true });
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await answerTo(outgoing.end(payload));
    } catch (error) {
      throw transportError(error, this.#where);
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  events(path: string, onEvent: (event: SseEvent) => void, onEnd: () => void): Promise<{ close(): void }> {
    return new Promise((resolve, reject) => {
      const outgoing = this.#open("GET", path, undefined, "text/event-stream");
      this.#streams.add(outgoing);
      let opened = false;
      const end = (error: unknown): void => {
        if (!this.#streams.delete(outgoing)) return;
        if (opened) onEnd();
        else reject(transportError(error, this.#where));
      };
      outgoing.on("error", end);
      outgoing.on("response", (response) => {
        if (response.statusCode !== 200) {
          response.resume();
          end(
            new StoreError("unreachable", `watching answered ${response.statusCode}`, {
              outcome: "not-applied",
            }),
          );
          return;
        }
        opened = true;
        const parser = new SseParser(onEvent);
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => parser.push(chunk));
        response.on("close", () => end(null));
        response.on("error", end);
        resolve({
          close: () => {
            this.#streams.delete(outgoing);
            outgoing.destroy();
          },
        });
      });
      outgoing.end();
    });
  }

  close(): void {
    for (const stream of this.#streams) stream.destroy();
    this.#streams.clear();
    this.#agent.destroy();
  }

  #open(
    method: string,
    path: string,
    payload: string | undefined,
    accept = "application/json",
  ): ClientRequest {
    const { url, apiKey } = this.#options;
    const options: RequestOptions = {
      method,
      agent: accept === "application/json" ? this.#agent : false,
      headers: {
        accept,
        ...(payload === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(payload) }),
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
    };
    const target = new URL(`${url.pathname.replace(/\/$/, "")}${path}`, url.origin);
    return (url.protocol === "https:" ? tlsRequest : httpRequest)(target, options);
  }

  #silent(afterMs: number): StoreError {
    const message = `${this.#where} gave no answer within ${Math.round(afterMs)} ms`;
    return new StoreError("timeout", message, { outcome: "unknown" });
  }
}

function answerTo(outgoing: ClientRequest): Promise<RemoteAnswer> {
  return new Promise((resolve, reject) => {
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      const status = response.statusCode ?? 0;
      readBody(response).then((text) => resolve({ status, body: parsed(text) }), reject);
    });
  });
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error("the answer is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** A proxy's error page is not JSON; the status still says enough. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
