/**
 * Requests with credentials that may expire. A function is asked for them when they are first needed, again when they
 * are about to expire, and when the server says that they have. Nobody waits for new ones while the old ones hold.
 */
import { StoreError, withDeadline } from "../../store/index.ts";
import { HttpClient, type HttpOptions, type HttpReply, type HttpRequest } from "./http.ts";

export interface Expiring {
  /** When they end, as a Date or in milliseconds since 1970. Without it they are used until they are refused. */
  readonly expiresAt?: Date | number;
}

/** The credentials, or a function that gets them. */
export type CredentialSource<Value> = Value | (() => Value | Promise<Value>);

export interface Signing<Value extends Expiring> {
  readonly source: CredentialSource<Value>;
  /** Throws an Error that says what is wrong with the credentials. */
  sign(request: HttpRequest, credentials: Value): HttpRequest | Promise<HttpRequest>;
  /** Whether this refusal may be about credentials that were good once. */
  hasExpired(reply: HttpReply): boolean;
}

/** Enough for a slow function, and for the difference between two clocks. */
const RENEW_BEFORE_MS = 60_000;

export class SignedHttp<Value extends Expiring> {
  readonly #signing: Signing<Value>;
  readonly #options: HttpOptions;
  readonly #http: HttpClient;
  #current: Value | null = null;
  #renewal: Promise<Value> | null = null;

  constructor(signing: Signing<Value>, options: HttpOptions) {
    this.#signing = signing;
    this.#options = options;
    this.#http = new HttpClient(options);
  }

  /** A refusal of credentials that have expired is certain, so the request goes out again with others. */
  async send(request: HttpRequest): Promise<HttpReply> {
    const { source, hasExpired } = this.#signing;
    const credentials = await this.#valid();
    const reply = await this.#sendAs(credentials, request);
    if (reply.status < 400 || typeof source !== "function" || !hasExpired(reply)) return reply;
    const others = this.#current === credentials ? await this.#renew() : await this.#valid();
    return await this.#sendAs(others, request);
  }

  close(): void {
    this.#http.close();
  }

  async #sendAs(credentials: Value, request: HttpRequest): Promise<HttpReply> {
    let signed: HttpRequest;
    try {
      signed = await this.#signing.sign(request, credentials);
    } catch (cause) {
      throw this.#failure("config", `the credentials are wrong: ${textOf(cause)}`, cause);
    }
    return await this.#http.send(signed);
  }

  async #valid(): Promise<Value> {
    const current = this.#current;
    if (current !== null && this.#leftMs(current) > RENEW_BEFORE_MS) return current;
    const renewal = this.#renew();
    if (current === null || this.#leftMs(current) <= 0) return await renewal;
    renewal.catch(() => undefined);
    return current;
  }

  #leftMs({ expiresAt = Number.POSITIVE_INFINITY }: Value): number {
    return Number(expiresAt) - this.#options.env.wallMs();
  }

  /** One at a time: whoever needs them waits for the same call. */
  #renew(): Promise<Value> {
    this.#renewal ??= this.#fetch().finally(() => {
      this.#renewal = null;
    });
    return this.#renewal;
  }

  async #fetch(): Promise<Value> {
    const { source } = this.#signing;
    const { env, timeoutMs } = this.#options;
    const get = typeof source === "function" ? (source as () => Value | Promise<Value>) : () => source;
    const late = (): Error => new Error(`no answer within ${timeoutMs} ms`);
    try {
      const value = await withDeadline(env, timeoutMs, Promise.resolve().then(get), late);
      if (typeof value !== "object") throw new Error(`${String(value)} is not an object`);
      if (Number.isNaN(this.#leftMs(value))) throw new Error("expiresAt is neither a Date nor a number");
      this.#current = value;
      return value;
    } catch (cause) {
      const message = `there are no credentials (${textOf(cause)}): check the function that gets them`;
      throw this.#failure("auth", message, cause);
    }
  }

  #failure(kind: "auth" | "config", message: string, cause: unknown): StoreError {
    return new StoreError(kind, `${this.#options.place}: ${message}`, { outcome: "not-applied", cause });
  }
}

function textOf(cause: unknown): string {
  return (cause instanceof Error ? cause.message : String(cause)).replace(/\s+/g, " ");
}
