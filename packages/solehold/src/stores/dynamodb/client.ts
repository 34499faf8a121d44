/** One signed request and its reply, and what DynamoDB's errors mean. Nothing that may have been done is repeated. */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";
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

type Meaning = readonly [kind: StoreErrorKind, outcome: FailedOutcome, advice: string];

const REFUSED: Meaning = ["auth", "not-applied", "check the credentials"];
const THROTTLED: Meaning = [
  "unreachable",
  "not-applied",
  "raise the table's capacity, or charge it by request",
];
const UNKNOWN: Meaning = ["unreachable", "unknown", "the outcome is unknown"];
const REJECTED: Meaning = ["internal", "not-applied", "the request does not fit this server or table"];

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

export async function dynamodbClient(
  { table, region, endpoint, credentials }: DynamodbPlace,
  options: Omit<HttpOptions, "place">,
): Promise<DynamodbClient> {
  const place = `DynamoDB table '${table}' at ${endpoint}`;
  const isRefused = (reply: HttpReply): boolean => MEANINGS[replyFrom(reply).error ?? ""] === REFUSED;
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
      const [kind, outcome, advice] = MEANINGS[reply.error] ?? UNKNOWN;
      const said = String(reply.body.message ?? reply.body.Message ?? "").replaceAll(/\s+/g, " ");
      const message = `${place}: ${reply.error} ${said}`.trimEnd();
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
