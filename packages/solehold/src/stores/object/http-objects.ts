/** Objects over HTTP, in any dialect: conditions go out as headers, replies come back as outcomes. */
import { StoreError } from "../../store/index.ts";
import type { Dialect, Headers } from "./dialect.ts";
import type { HttpClient, HttpReply, HttpRequest } from "./http.ts";
import {
  type Dated,
  type EtagQuoting,
  type ObjectBody,
  type ObjectPage,
  type PutOptions,
  type PutOutcome,
  plainEtag,
  type QuotableObjects,
} from "./port.ts";
import { failureOf, foundIn, outcomeOf, outcomeOfFailure, refusal } from "./replies.ts";

export class HttpObjects implements QuotableObjects {
  quoting: EtagQuoting = "quoted";
  readonly #dialect: Dialect;
  readonly #http: HttpClient;

  constructor(dialect: Dialect, http: HttpClient) {
    this.#dialect = dialect;
    this.#http = http;
  }

  get place(): string {
    return this.#dialect.words.place;
  }

  async get(name: string): Promise<{ readonly object: ObjectBody | null } & Dated> {
    const reply = await this.#ask("GET", this.#dialect.urlOf(name));
    const found = foundIn(this.#dialect.words, reply);
    const object = found === null ? null : { bytes: found.body, etag: this.#etagOf(found) };
    return { object, dateMs: reply.dateMs };
  }

  putIfAbsent(name: string, bytes: Uint8Array, options: PutOptions = {}): Promise<PutOutcome> {
    return this.#put(name, { "if-none-match": "*" }, bytes, options);
  }

  putIfMatch(name: string, etag: string, bytes: Uint8Array, options: PutOptions = {}): Promise<PutOutcome> {
    return this.#put(name, { "if-match": this.#condition(etag) }, bytes, options);
  }

  deleteIfMatch(name: string, etag: string): Promise<PutOutcome> {
    return this.#write("DELETE", name, { "if-match": this.#condition(etag) }, undefined);
  }

  async remove(name: string): Promise<void> {
    await this.#ask("DELETE", this.#dialect.urlOf(name));
  }

  async list(prefix: string, after: string | null): Promise<ObjectPage> {
    const { words } = this.#dialect;
    const url = this.#dialect.listUrl(prefix, after);
    if (url === null)
      throw new StoreError("config", `${words.place}: it cannot list what it holds: name the keys instead`, {
        outcome: "not-applied",
      });
    const reply = await this.#ask("GET", url);
    if (reply.status !== 200) throw refusal(words, reply);
    return { ...this.#dialect.parseList(reply.body.toString("utf8")), dateMs: reply.dateMs };
  }

  close(): void {
    this.#http.close();
  }

  #put(name: string, condition: Headers, bytes: Uint8Array, options: PutOptions): Promise<PutOutcome> {
    const { metadataPrefix, putHeaders } = this.#dialect;
    const { metadata = {}, contentType = "application/octet-stream" } = options;
    const headers: Record<string, string> = { ...putHeaders, ...condition, "content-type": contentType };
    for (const [key, value] of Object.entries(metadata)) headers[`${metadataPrefix}${key}`] = value;
    return this.#write("PUT", name, headers, bytes);
  }

  async #write(
    method: "PUT" | "DELETE",
    name: string,
    headers: Headers,
    bytes: Uint8Array | undefined,
  ): Promise<PutOutcome> {
    const { words } = this.#dialect;
    let reply: HttpReply;
    try {
      reply = await this.#send(method, this.#dialect.urlOf(name), headers, bytes);
    } catch (error) {
      return outcomeOfFailure(words, error);
    }
    return outcomeOf(words, reply);
  }

  /** A failed read changed nothing. */
  async #ask(method: "GET" | "DELETE", url: string): Promise<HttpReply> {
    try {
      return await this.#send(method, url, {}, undefined);
    } catch (error) {
      const { kind, message } = failureOf(this.#dialect.words, error);
      throw new StoreError(kind, message, { outcome: "not-applied", cause: error });
    }
  }

  async #send(
    method: HttpRequest["method"],
    url: string,
    headers: Headers,
    body: Uint8Array | undefined,
  ): Promise<HttpReply> {
    const signed = await this.#dialect.signed({ method, url, headers, body });
    const content = body === undefined ? {} : { body };
    return await this.#http.send({ method, url: new URL(url), headers: signed, ...content });
  }

  #condition(etag: string): string {
    return this.quoting === "quoted" ? `"${etag}"` : etag;
  }

  #etagOf(reply: HttpReply): string {
    const etag = plainEtag(reply.headers.etag);
    if (etag !== null) return etag;
    const message = `${this.place}: it sends no strong ETag, so it cannot keep leases`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  }
}
