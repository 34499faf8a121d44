/**
 * Objects over HTTP, in any protocol: read with an ETag, written on condition of one. Nothing here knows of leases. A
 * write that may have been applied is never repeated: its own success would look like somebody else's.
 *
 * A reply out of a cache is refused: its content may be old, and its Date is the time at which it was stored.
 */
import { StoreError } from "../../store/index.ts";
import { endedAs } from "../support/failures.ts";
import type { HttpReply, HttpRequest } from "../support/http.ts";
import { foundIn, type Protocol, refusal, verdictOf } from "./protocol.ts";

export type PutOutcome = (
  | { readonly kind: "applied" /** Null when the server did not name it. */; readonly etag: string | null }
  /** The server refused because of the condition. */
  | { readonly kind: "precondition-failed" }
  /** No answer, or one that leaves it open. */
  | { readonly kind: "unknown"; readonly cause: StoreError }
) & {
  /** The server's time, from its Date header; null when it sent none. */
  readonly dateMs: number | null;
};

export interface FoundObject {
  readonly object: { readonly bytes: Buffer; readonly etag: string } | null;
  readonly dateMs: number;
}

export interface ObjectPage {
  /** In order of the server, with its prefix. */
  readonly names: readonly string[];
  /** Pass to go on; null at the end. */
  readonly next: string | null;
  readonly dateMs: number;
}

export type ConditionalObjects = Pick<HttpObjects, keyof HttpObjects>;

export class HttpObjects {
  /** How an ETag is sent in a condition: one server wants it as it came, another without quotes. */
  quoting: "quoted" | "bare" = "quoted";
  readonly #protocol: Protocol;

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  /** For messages. */
  get place(): string {
    return this.#protocol.place;
  }

  get canList(): boolean {
    return this.#protocol.listing !== null;
  }

  /** Rejects with a StoreError when it could not be read, or came from a cache. */
  async get(name: string): Promise<FoundObject> {
    const reply = await this.#ask("GET", this.#protocol.urlOf(name));
    const found = foundIn(this.#protocol, reply);
    const object = found === null ? null : { bytes: found.body, etag: this.#etagOf(found) };
    return { object, dateMs: this.#dateOf(reply) };
  }

  /** Rejects with a StoreError only when it was certainly not done, as with wrong credentials. */
  putIfAbsent(name: string, bytes: Uint8Array, contentType?: string): Promise<PutOutcome> {
    return this.#put(name, { "if-none-match": "*" }, bytes, contentType);
  }

  putIfMatch(name: string, etag: string, bytes: Uint8Array, contentType?: string): Promise<PutOutcome> {
    return this.#put(name, this.#ifMatch(etag), bytes, contentType);
  }

  /** Whether servers of this kind honour the condition differs: the probe finds out. */
  deleteIfMatch(name: string, etag: string): Promise<PutOutcome> {
    const url = this.#protocol.urlOf(name);
    return this.#write({ method: "DELETE", url, headers: this.#ifMatch(etag) });
  }

  /** Without a condition: for objects whose name nobody else uses. */
  async remove(name: string): Promise<void> {
    await this.#ask("DELETE", this.#protocol.urlOf(name));
  }

  /** A page has at most `limit` names, and may have fewer. */
  async list(prefix: string, after: string | null, limit: number): Promise<ObjectPage> {
    const { listing } = this.#protocol;
    if (listing === null) throw this.#unfit("it cannot list what it holds: name the keys instead");
    const reply = await this.#ask("GET", listing.url(prefix, after, limit));
    if (reply.status !== 200) throw refusal(this.#protocol, reply, "not-applied");
    return { ...listing.parse(reply.body.toString("utf8")), dateMs: this.#dateOf(reply) };
  }

  close(): void {
    this.#protocol.http.close();
  }

  #put(
    name: string,
    condition: HttpRequest["headers"],
    bytes: Uint8Array,
    contentType = "application/octet-stream",
  ): Promise<PutOutcome> {
    const headers = { ...this.#protocol.putHeaders, ...condition, "content-type": contentType };
    return this.#write({ method: "PUT", url: this.#protocol.urlOf(name), headers, body: bytes });
  }

  async #write(request: HttpRequest): Promise<PutOutcome> {
    let reply: HttpReply;
    try {
      reply = await this.#protocol.http.send(request);
    } catch (error) {
      if (!(error instanceof StoreError) || error.outcome === "not-applied") throw error;
      return { kind: "unknown", cause: error, dateMs: null };
    }
    const { dateMs } = reply;
    const kind = verdictOf(this.#protocol, reply);
    if (kind === "refused") throw refusal(this.#protocol, reply, "not-applied");
    if (kind === "applied") return { kind, etag: plainEtag(reply.headers.etag), dateMs };
    if (kind === "precondition-failed") return { kind, dateMs };
    return { kind, cause: refusal(this.#protocol, reply, "unknown"), dateMs };
  }

  /** A failed read changed nothing. */
  #ask(method: "GET" | "DELETE", url: string): Promise<HttpReply> {
    return this.#protocol.http.send({ method, url, headers: {} }).catch(endedAs("not-applied"));
  }

  #ifMatch(etag: string): HttpRequest["headers"] {
    return { "if-match": this.quoting === "quoted" ? `"${etag}"` : etag };
  }

  #dateOf({ headers, dateMs }: HttpReply): number {
    if (headers.age !== undefined)
      throw this.#unfit(`a cache answered for it (Age: ${headers.age}): let these objects bypass the cache`);
    if (dateMs !== null) return dateMs;
    throw this.#unfit("it sends no Date header, and leases need its clock");
  }

  #etagOf({ headers }: HttpReply): string {
    const etag = plainEtag(headers.etag);
    if (etag !== null) return etag;
    throw this.#unfit("it sends no strong ETag, so it cannot keep leases");
  }

  #unfit(what: string): StoreError {
    return new StoreError("config", `${this.place}: ${what}`, { outcome: "not-applied" });
  }
}

/** The ETag without its quotes; null for a missing or weak one, which no condition may use. */
function plainEtag(header: string | undefined): string | null {
  if (header === undefined || header === "" || header.startsWith("W/")) return null;
  return header.replace(/^"|"$/g, "");
}
