/**
 * Credentials that may expire. A function is asked for them when they are first needed, again when they are about to
 * expire, and when the server has refused them. Nobody waits for new ones while the old ones hold.
 */
import type { Env } from "../../env/index.ts";
import { StoreError, withDeadline } from "../../store/index.ts";

export interface Expiring {
  /** When they end, as a Date or in milliseconds since 1970. Without it they are used until they are refused. */
  readonly expiresAt?: Date | number;
}

/** The credentials, or a function that gets them. */
export type CredentialSource<Value> = Value | (() => Value | Promise<Value>);

/** `place` begins the messages. */
type AskingOptions = { readonly place: string; readonly env: Env; readonly timeoutMs: number };

/** Enough for a slow function, and for the difference between two clocks. */
const RENEW_BEFORE_MS = 60_000;

export class ExpiringCredentials<Value extends Expiring> {
  readonly #source: CredentialSource<Value>;
  readonly #options: AskingOptions;
  #current: Value | null = null;
  #renewal: Promise<Value> | null = null;

  constructor(source: CredentialSource<Value>, options: AskingOptions) {
    this.#source = source;
    this.#options = options;
  }

  /** Rejects with a StoreError "auth" when there are none. */
  async get(): Promise<Value> {
    const current = this.#current;
    if (current !== null && this.#leftMs(current) > RENEW_BEFORE_MS) return current;
    const renewal = this.#renew();
    if (current === null || this.#leftMs(current) <= 0) return await renewal;
    renewal.catch(() => undefined);
    return current;
  }

  /** Others than those that the server refused; null when there are none to be had. */
  async replace(refused: Value): Promise<Value | null> {
    if (typeof this.#source !== "function") return null;
    return await (this.#current === refused ? this.#renew() : this.get());
  }

  #leftMs({ expiresAt = Number.POSITIVE_INFINITY }: Value): number {
    return Number(expiresAt) - this.#options.env.wallMs();
  }

  /** One at a time: all that need them wait for the same call. */
  #renew(): Promise<Value> {
    this.#renewal ??= this.#fetch().finally(() => {
      this.#renewal = null;
    });
    return this.#renewal;
  }

  async #fetch(): Promise<Value> {
    const source = this.#source;
    const { place, env, timeoutMs } = this.#options;
    const get = typeof source === "function" ? (source as () => Value | Promise<Value>) : () => source;
    const late = (): Error => new Error(`no answer within ${timeoutMs} ms`);
    try {
      const value = await withDeadline(env, timeoutMs, Promise.resolve().then(get), late);
      if (typeof value !== "object") throw new Error(`${String(value)} is not an object`);
      if (Number.isNaN(this.#leftMs(value))) throw new Error("expiresAt is neither a Date nor a number");
      this.#current = value;
      return value;
    } catch (cause) {
      const reason = (cause instanceof Error ? cause.message : String(cause)).replace(/\s+/g, " ");
      const message = `${place}: there are no credentials (${reason}): check the function that gets them`;
      throw new StoreError("auth", message, { outcome: "not-applied", cause });
    }
  }
}
