/** HTTP requests with what proves who sends them. */

import { type CredentialSource, type Expiring, ExpiringCredentials } from "./expiring-credentials.ts";
import { HttpClient, type HttpOptions, type HttpReply, type HttpRequest } from "./http.ts";
import { configError } from "./options.ts";

export interface Signing<Value extends Expiring> {
  readonly source: CredentialSource<Value>;
  /** Throws an Error that says what is wrong with the credentials. */
  sign(request: HttpRequest, credentials: Value): HttpRequest | Promise<HttpRequest>;
  /** Whether this refusal may be about credentials that were good once, or about the time of the signature. */
  isRefused(reply: HttpReply): boolean;
  /** Signs by the server's clock from now on if this one is far off. True if that changed something. */
  correctClock?(serverMs: number | null): boolean;
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

  /** A refusal of a signature is certain, so the request goes out again if it can be signed in another way. */
  async send(request: HttpRequest): Promise<HttpReply> {
    const credentials = await this.#credentials.get();
    const reply = await this.#sendAs(credentials, request);
    if (reply.status < 400 || !this.#signing.isRefused(reply)) return reply;
    const isCorrected = this.#signing.correctClock?.(reply.dateMs) ?? false;
    const others = isCorrected ? credentials : await this.#credentials.replace(credentials);
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
      throw configError(`${this.#place}: the credentials are wrong: ${(cause as Error).message}`, cause);
    }
    return await this.#http.send(signed);
  }
}
