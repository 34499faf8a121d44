/**
 * One signed request and its reply. Nothing is repeated: the caller must know what became of its one request. The
 * signature carries the time, and a wall clock that is wrong is corrected by the Date header of the last reply.
 */
import type { Env } from "../../env/index.ts";
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";
import { Credentials } from "./credentials.ts";
import type { DynamodbPlace } from "./options.ts";

export interface Reply {
  /** The error's name; null for a success. */
  readonly error: string | null;
  readonly body: Readonly<Record<string, unknown>>;
  /** The Date header, to the second. */
  readonly timeMs: number;
}

type Meaning = readonly [kind: StoreErrorKind, outcome: FailedOutcome, advice: string];

const REFUSED: Meaning = ["auth", "not-applied", "check the credentials"];
const THROTTLED: Meaning = [
  "unreachable",
  "not-applied",
  "raise the table's capacity, or charge it by request",
];
const UNKNOWN: Meaning = ["unreachable", "unknown", "the outcome is unknown"];
const REJECTED: Meaning = ["internal", "not-applied", "the request does not fit this server or table"];

/** What DynamoDB's errors mean: kind, whether a write can have happened, what to do. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  AccessDeniedException: [
    "auth",
    "not-applied",
    "allow DescribeTable, GetItem, PutItem, DeleteItem, Query (and Scan with pollMs, CreateTable with createTable)",
  ],
  ExpiredTokenException: REFUSED,
  IncompleteSignatureException: REFUSED,
  InvalidSignatureException: REFUSED,
  MissingAuthenticationTokenException: REFUSED,
  UnrecognizedClientException: REFUSED,
  ResourceNotFoundException: ["config", "not-applied", "the table is missing"],
  ProvisionedThroughputExceededException: THROTTLED,
  RequestLimitExceeded: THROTTLED,
  ThrottlingException: THROTTLED,
  TransactionConflictException: ["internal", "not-applied", "another program writes to this table"],
  ItemCollectionSizeLimitExceededException: ["full", "not-applied", "the table must have no local index"],
  SerializationException: REJECTED,
  ValidationException: REJECTED,
};

/** The connection was never made, so nothing was sent. */
const NOT_SENT =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CONNECT_TIMEOUT|CERT|SIGNED|VERIFY|_TLS_|_SSL_/;
/** A wall clock further off than this is corrected: AWS refuses what was signed five minutes ago. */
const CLOCK_OFF_MS = 60_000;

export class DynamodbClient {
  readonly #place: DynamodbPlace;
  readonly #env: Env;
  readonly #credentials: Credentials;
  readonly #sign: typeof import("aws4fetch").AwsV4Signer;
  /** Deriving a signing key takes four rounds of HMAC, and it holds for a day. */
  readonly #cache = new Map<string, ArrayBuffer>();
  #clockOffMs = 0;

  static async load(place: DynamodbPlace, env: Env): Promise<DynamodbClient> {
    const { AwsV4Signer } = await import("aws4fetch").catch((cause) => {
      const message = "dynamodb: the package aws4fetch is missing: run `npm install aws4fetch`";
      throw new StoreError("config", message, { outcome: "not-applied", cause });
    });
    return new DynamodbClient(place, env, AwsV4Signer);
  }

  private constructor(place: DynamodbPlace, env: Env, sign: typeof import("aws4fetch").AwsV4Signer) {
    this.#place = place;
    this.#env = env;
    this.#sign = sign;
    this.#credentials = new Credentials(place.credentials, env);
  }

  /** Rejects with a StoreError, except for those errors that are answers. */
  async send(
    action: string,
    request: object,
    signal: AbortSignal,
    answers: readonly string[],
  ): Promise<Reply> {
    const body = JSON.stringify(request);
    let reply = await this.#exchange(action, body, signal);
    // A refusal is certain. The second time it goes with new credentials and by the server's clock.
    if (MEANINGS[reply.error ?? ""] === REFUSED) {
      this.#credentials.forget();
      reply = await this.#exchange(action, body, signal);
    }
    if (reply.error === null || answers.includes(reply.error)) return reply;
    const [kind, outcome, advice] = MEANINGS[reply.error] ?? UNKNOWN;
    const said = String(reply.body.message ?? reply.body.Message ?? "").replaceAll(/\s+/g, " ");
    const message = `dynamodb: table ${this.#place.table}: ${reply.error} ${said}`.trimEnd();
    throw new StoreError(kind, `${message}: ${advice}`, { outcome });
  }

  async #exchange(action: string, body: string, signal: AbortSignal): Promise<Reply> {
    const headers = await this.#signed(action, body);
    try {
      const response = await fetch(this.#place.endpoint, {
        method: "POST",
        headers,
        body,
        signal,
        redirect: "manual",
      });
      const text = await response.text();
      const timeMs = Date.parse(response.headers.get("date") ?? "");
      const offMs = timeMs - this.#env.wallMs();
      if (!Number.isNaN(offMs)) this.#clockOffMs = Math.abs(offMs) > CLOCK_OFF_MS ? offMs : 0;
      const parsed = parse(text);
      const type = String(parsed?.__type ?? "").replace(/^.*#/, "");
      const error = response.ok && parsed !== null ? null : type || `HTTP ${response.status}`;
      return { error, body: parsed ?? {}, timeMs };
    } catch (cause) {
      throw this.#lost(cause as Error);
    }
  }

  #lost(cause: Error): StoreError {
    const inner = cause.cause as (Error & { readonly code?: string }) | undefined;
    const reason = [inner?.code, inner?.message ?? cause.message]
      .filter(Boolean)
      .join(" ")
      .replaceAll(/\s+/g, " ");
    const outcome = NOT_SENT.test(inner?.code ?? "") ? "not-applied" : "unknown";
    const message = `dynamodb: no answer from ${this.#place.endpoint} (${reason}): check address and network`;
    return new StoreError("unreachable", message, { outcome, cause });
  }

  async #signed(action: string, body: string): Promise<Headers> {
    const { endpoint: url, region } = this.#place;
    const { accessKeyId, secretAccessKey, sessionToken } = await this.#credentials.get();
    const datetime = new Date(this.#env.wallMs() + this.#clockOffMs).toISOString().replace(/[-:]|\.\d+/g, "");
    const signer = new this.#sign({
      ...{ method: "POST", url, body, region, service: "dynamodb", datetime, cache: this.#cache },
      ...{ accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) },
      headers: {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": `DynamoDB_20120810.${action}`,
      },
    });
    return (await signer.sign()).headers;
  }
}

function parse(text: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return null;
  }
}
