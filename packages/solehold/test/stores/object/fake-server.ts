/**
 * A small HTTP server with ETags whose virtues can be switched off one by one, as those of real servers
 * are. It answers a few milliseconds of work, keeps everything in memory and tells what it was sent.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Manners {
  ifNoneMatch: "kept" | "ignored";
  ifMatch: "kept" | "ignored";
  quotes: "either" | "bare";
  deleteIfMatch: "kept" | "ignored";
  date: "sent" | "missing";
  etagInPutReply: "sent" | "missing";
  /** What conditional writes that would be applied are answered with; the write happens nevertheless. */
  answer: number | null;
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
  };
  readonly objects = new Map<string, Buffer>();
  readonly requests: { method: string; url: string; authorization: string | undefined }[] = [];
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
    this.requests.push({ method, url, authorization: headers.authorization });
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    response.sendDate = this.manners.date === "sent";
    const current = this.objects.get(url);
    const answer = (status: number, body?: Buffer): void => {
      if (body !== undefined) response.setHeader("etag", `"${etagOf(body)}"`);
      response.writeHead(status).end(method === "GET" ? body : undefined);
    };
    if (method === "GET") return current === undefined ? answer(404) : answer(200, current);
    if (!this.#allowed(method, headers, current)) return answer(412);
    if (method === "DELETE") this.objects.delete(url);
    const body = Buffer.concat(chunks);
    if (method === "PUT") this.objects.set(url, body);
    if (this.manners.answer !== null) return answer(this.manners.answer);
    answer(200, method === "PUT" && this.manners.etagInPutReply === "sent" ? body : undefined);
  }

  #allowed(method: string, headers: IncomingMessage["headers"], current: Buffer | undefined): boolean {
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
