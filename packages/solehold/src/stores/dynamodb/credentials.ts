/** AWS credentials: fixed ones, or a function whose expire. */
import type { Env } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** When they end, as a Date or in milliseconds since 1970. Without it they are used until they are refused. */
  readonly expiresAt?: Date | number;
}

export type CredentialSource = AwsCredentials | (() => AwsCredentials | Promise<AwsCredentials>);

/** They are asked for again so long before they end. */
const RENEW_BEFORE_MS = 60_000;

export class Credentials {
  readonly #source: CredentialSource;
  readonly #env: Env;
  #current: AwsCredentials | null = null;
  #renewal: Promise<AwsCredentials> | null = null;

  constructor(source: CredentialSource, env: Env) {
    this.#source = source;
    this.#env = env;
  }

  async get(): Promise<AwsCredentials> {
    const source = this.#source;
    if (typeof source !== "function") return source;
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#current ?? {};
    if (this.#current !== null && Number(expiresAt) - RENEW_BEFORE_MS > this.#env.wallMs())
      return this.#current;
    // One call for all who need them.
    this.#renewal ??= this.#renew(source).finally(() => {
      this.#renewal = null;
    });
    return await this.#renewal;
  }

  /** The server refused them: the next request asks for others. */
  forget(): void {
    this.#current = null;
  }

  async #renew(source: () => AwsCredentials | Promise<AwsCredentials>): Promise<AwsCredentials> {
    try {
      this.#current = await source();
      return this.#current;
    } catch (cause) {
      const reason = (cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s+/g, " ");
      const message = `dynamodb: the function for credentials failed: ${reason}`;
      throw new StoreError("auth", message, { outcome: "not-applied", cause });
    }
  }
}
