/** One signed request and its reply, and what DynamoDB's errors mean. Nothing that may have been done is repeated. */
import { StoreError, type StoreErrorKind } from "../../store/index.ts";
import { awsSigning } from "../support/aws-signing.ts";
import type { HttpOptions, HttpReply } from "../support/http.ts";
import { SignedHttp } from "../support/signed-http.ts";
import type { DynamodbPlace } from "./options.ts";

export interface Reply {
  /** The error's name; null for a success. */
  readonly error: string | null;
  readonly body: Readonly<Record<string, unknown>>;
  /** The Date header, to the second; NaN when there was none. */
  readonly timeMs: number;
}

export interface DynamodbClient {
  /** Rejects with a StoreError, except for those errors that are answers. */
  send(action: string, request: object, answers?: readonly string[]): Promise<Reply>;
  close(): void;
}

type Advice = readonly [kind: StoreErrorKind, advice: string];

const WRONG_CREDENTIALS: Advice = ["auth", "check the credentials"];
const THROTTLED: Advice = ["unreachable", "raise the table's capacity, or charge it by request"];
const MALFORMED: Advice = ["internal", "the request does not fit this server or table"];

/** The server said no, and nothing was done. */
const REFUSALS: Readonly<Record<string, Advice>> = {
  AccessDeniedException: [
    "auth",
    "allow DescribeTable, GetItem, PutItem, DeleteItem, Query (and Scan with pollMs, CreateTable with createTable)",
  ],
  ExpiredTokenException: WRONG_CREDENTIALS,
  IncompleteSignatureException: WRONG_CREDENTIALS,
  InvalidSignatureException: WRONG_CREDENTIALS,
  MissingAuthenticationTokenException: WRONG_CREDENTIALS,
  UnrecognizedClientException: WRONG_CREDENTIALS,
  ResourceNotFoundException: ["config", "the table is missing"],
  ProvisionedThroughputExceededException: THROTTLED,
  RequestLimitExceeded: THROTTLED,
  ThrottlingException: THROTTLED,
  TransactionConflictException: ["internal", "another program writes to this table"],
  ItemCollectionSizeLimitExceededException: ["full", "the table must have no local index"],
  SerializationException: MALFORMED,
  ValidationException: MALFORMED,
};

export async function dynamodbClient(
  { table, region, endpoint, credentials }: DynamodbPlace,
  options: Omit<HttpOptions, "place">,
): Promise<DynamodbClient> {
  const place = `DynamoDB table '${table}' at ${endpoint}`;
  const isRefused = (reply: HttpReply): boolean =>
    REFUSALS[replyFrom(reply).error ?? ""] === WRONG_CREDENTIALS;
  const signing = await awsSigning({ service: "dynamodb", region, credentials, isRefused, env: options.env });
  const http = new SignedHttp(signing, { ...options, place });
  return {
    async send(action, request, answers = []) {
      const headers = {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": `DynamoDB_20120810.${action}`,
      };
      const body = Buffer.from(JSON.stringify(request));
      const reply = replyFrom(await http.send({ method: "POST", url: endpoint, headers, body }));
      if (reply.error === null || answers.includes(reply.error)) return reply;
      const refusal = REFUSALS[reply.error];
      const [kind, advice] = refusal ?? ["unreachable", "the outcome is unknown"];
      const said = String(reply.body.message ?? reply.body.Message ?? "").replaceAll(/\s+/g, " ");
      const message = `${place}: ${reply.error} ${said}`.trimEnd();
      const outcome = refusal === undefined ? "unknown" : "not-applied";
      throw new StoreError(kind, `${message}: ${advice}`, { outcome });
    },
    close: () => http.close(),
  };
}

function replyFrom({ status, body, dateMs }: HttpReply): Reply {
  const parsed = parse(body.toString("utf8"));
  const type = String(parsed?.__type ?? "").replace(/^.*#/, "");
  const error = status >= 200 && status < 300 && parsed !== null ? null : type || `HTTP ${status}`;
  return { error, body: parsed ?? {}, timeMs: dateMs ?? Number.NaN };
}

function parse(text: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return null;
  }
}
