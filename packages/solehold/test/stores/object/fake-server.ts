/**
 * A small HTTP server with ETags whose virtues can be switched off one by one, as those of real servers and of what
 * stands before them are. It keeps everything in memory and tells what it was sent.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

type Headers = IncomingMessage["headers"];

export interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
}

export interface Manners {
  ifNoneMatch: "kept" | "ignored";
  ifMatch: "kept" | "ignored";
  quotes: "either" | "bare";
  deleteIfMatch: "kept" | "ignored";
  date: "sent" | "missing";
  etagInPutReply: "sent" | "missing";
  /** What conditional writes that would be applied are answered with; the write happens nevertheless. */
  answer: number | null;
  /** As a proxy that repeats requests: a write is carried out twice, and the second answer is sent. */
  writes: "once" | "twice";
  /** The connection ends after a write was carried out. */
  afterWrite: "answered" | "cut";
  /** Sent with every reply to a GET, as a cache does. */
  age: string | null;
  delayMs: number;
  /** Every request waits for this. */
  hold: (() => Promise<void>) | null;
  /** The server's clock, if it is not the real one. */
  nowMs: (() => number) | null;
  /** Answers in the place of the server; nothing happens then. */
  refuse: ((request: SentRequest) => { readonly status: number; readonly code: string } | null) | null;
}

export class FakeServer {
  readonly manners: Manners = {
    ifNoneMatch: "kept",
    ifMatch: "kept",
    quotes: "either",
    deleteIfMatch: "kept",
    date: "sent",
    etagInPutReply: "sent",
    answer: null,
    writes: "once",
    afterWrite: "answered",
    age: null,
    delayMs: 0,
    hold: null,
    nowMs: null,
    refuse: null,
  };
  readonly objects = new Map<string, Buffer>();
  readonly requests: SentRequest[] = [];
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http+etag://127.0.0.1:${(this.#server.address() as AddressInfo).port}/store/`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    const sent = { method, url, headers };
    this.requests.push(sent);
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    if (this.manners.delayMs > 0) await delay(this.manners.delayMs);
    await this.manners.hold?.();
    response.sendDate = this.manners.date === "sent";
    if (this.manners.nowMs !== null) response.setHeader("date", new Date(this.manners.nowMs()).toUTCString());
    const refused = this.manners.refuse?.(sent) ?? null;
    if (refused !== null) {
      response.writeHead(refused.status).end(`<Error><Code>${refused.code}</Code></Error>`);
      return;
    }
    const answer = (status: number, body?: Buffer): void => {
      if (body !== undefined) response.setHeader("etag", `"${etagOf(body)}"`);
      response.writeHead(status).end(method === "GET" ? body : undefined);
    };
    if (method === "GET") {
      if (this.manners.age !== null) response.setHeader("age", this.manners.age);
      const current = this.objects.get(url);
      return current === undefined ? answer(404) : answer(200, current);
    }
    const body = Buffer.concat(chunks);
    let applied = this.#write(sent, body);
    if (this.manners.writes === "twice") applied = this.#write(sent, body);
    if (this.manners.afterWrite === "cut") return void request.socket.destroy();
    if (!applied) return answer(412);
    if (this.manners.answer !== null) return answer(this.manners.answer);
    answer(200, method === "PUT" && this.manners.etagInPutReply === "sent" ? body : undefined);
  }

  /** False when the condition was not met. */
  #write({ method, url, headers }: SentRequest, body: Buffer): boolean {
    if (!this.#allowed(method, headers, this.objects.get(url))) return false;
    if (method === "DELETE") this.objects.delete(url);
    else this.objects.set(url, body);
    return true;
  }

  #allowed(method: string, headers: Headers, current: Buffer | undefined): boolean {
    const { ifNoneMatch, ifMatch, quotes, deleteIfMatch } = this.manners;
    if (headers["if-none-match"] === "*" && ifNoneMatch === "kept") return current === undefined;
    const wanted = headers["if-match"];
    const kept = method === "DELETE" ? deleteIfMatch : ifMatch;
    if (wanted === undefined || kept === "ignored") return true;
    if (current === undefined) return false;
    const etag = etagOf(current);
    return wanted === etag || (quotes === "either" && wanted === `"${etag}"`);
  }
}

function etagOf(body: Buffer): string {
  return createHash("md5").update(body).digest("hex");
}
