/** HTTP requests with what proves who sends them. */
import { StoreError } from "../../store/index.ts";
import {
  type CredentialSource,
  type Expiring,
  ExpiringCredentials,
} from "../support/expiring-credentials.ts";
import { HttpClient, type HttpOptions, type HttpReply, type HttpRequest } from "./http.ts";

export interface Signing<Value extends Expiring> {
  readonly source: CredentialSource<Value>;
  /** Throws an Error that says what is wrong with the credentials. */
  sign(request: HttpRequest, credentials: Value): HttpRequest | Promise<HttpRequest>;
  /** Whether this refusal may be about credentials that were good once. */
  hasExpired(reply: HttpReply): boolean;
}

export class SignedHttp<Value extends Expiring> {
  readonly #place: string;
  readonly #signing: Signing<Value>;
  readonly #credentials: ExpiringCredentials<Value>;
  readonly #http: HttpClient;

  constructor(signing: Signing<Value>, options: HttpOptions) {
    this.#place = options.place;
    this.#signing = signing;
    this.#credentials = new ExpiringCredentials(signing.source, options);
    this.#http = new HttpClient(options);
  }

  /** A refusal of credentials that have expired is certain, so the request goes out again with others. */
  async send(request: HttpRequest): Promise<HttpReply> {
    const credentials = await this.#credentials.get();
    const reply = await this.#sendAs(credentials, request);
    if (reply.status < 400 || !this.#signing.hasExpired(reply)) return reply;
    const others = await this.#credentials.replace(credentials);
    return others === null ? reply : await this.#sendAs(others, request);
  }

  close(): void {
    this.#http.close();
  }

  async #sendAs(credentials: Value, request: HttpRequest): Promise<HttpReply> {
    let signed: HttpRequest;
    try {
      signed = await this.#signing.sign(request, credentials);
    } catch (cause) {
      const message = `${this.#place}: the credentials are wrong: ${(cause as Error).message}`;
      throw new StoreError("config", message, { outcome: "not-applied", cause });
    }
    return await this.#http.send(signed);
  }
}
