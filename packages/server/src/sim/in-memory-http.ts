/**
 * A request and a response of node:http as far as the HTTP framework uses them, without a socket: nothing in
 * them waits for the event loop, so a simulated run stays the same event for event.
 */
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpAnswerText, HttpRequestText } from "@solehold/simulator";

class MemoryRequest extends EventEmitter {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly httpVersion = "1.1";
  readonly socket = { remoteAddress: "127.0.0.1" };
  readonly #body: string | null;
  #isRead = false;

  constructor({ method, path, body }: HttpRequestText) {
    super();
    this.method = method;
    this.url = path;
    this.#body = body;
    // Without API keys a server only answers requests that name a loopback host.
    const host = { host: "127.0.0.1", accept: "application/json" };
    this.headers =
      body === null
        ? host
        : { ...host, "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) };
  }

  setEncoding(): this {
    return this;
  }

  resume(): this {
    if (this.#isRead) return this;
    this.#isRead = true;
    if (this.#body !== null) this.emit("data", this.#body);
    this.emit("end");
    return this;
  }
}

class MemoryResponse extends EventEmitter {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  writableFinished = false;
  destroyed = false;
  readonly #headers = new Map<string, unknown>();
  readonly #answer: (given: HttpAnswerText) => void;

  constructor(answer: (given: HttpAnswerText) => void) {
    super();
    this.#answer = answer;
  }

  setHeader(name: string, value: unknown): this {
    this.#headers.set(name.toLowerCase(), value);
    return this;
  }

  getHeader(name: string): unknown {
    return this.#headers.get(name.toLowerCase());
  }

  hasHeader(name: string): boolean {
    return this.#headers.has(name.toLowerCase());
  }

  removeHeader(name: string): void {
    this.#headers.delete(name.toLowerCase());
  }

  writeHead(status: number): this {
    this.statusCode = status;
    this.headersSent = true;
    return this;
  }

  end(text?: string): this {
    if (this.writableEnded || this.destroyed) return this;
    this.writableEnded = true;
    this.writableFinished = true;
    this.#answer({ status: this.statusCode, body: text ?? "" });
    this.emit("finish");
    this.emit("close");
    return this;
  }

  /** The client is gone. */
  hangUp(): void {
    if (this.destroyed || this.writableFinished) return;
    this.destroyed = true;
    this.emit("close");
  }
}

export interface MemoryExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  hangUp(): void;
}

export function memoryExchange(
  request: HttpRequestText,
  answer: (given: HttpAnswerText) => void,
): MemoryExchange {
  const response = new MemoryResponse(answer);
  return {
    request: new MemoryRequest(request) as unknown as IncomingMessage,
    response: response as unknown as ServerResponse,
    hangUp: () => response.hangUp(),
  };
}
