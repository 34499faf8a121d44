/** What can be set, checked when the store is opened: a wrong value is an error at once, with its name. */
import type { StoreError } from "../../store/index.ts";
import { type AwsCredentials, awsCredentialsFrom } from "../support/aws-signing.ts";
import type { CredentialSource } from "../support/expiring-credentials.ts";
import {
  assertEndpoint,
  assertRegion,
  type CallOptions,
  configError,
  urlParameters,
  withoutPassword,
} from "../support/options.ts";

export interface DynamodbStoreOptions extends CallOptions {
  /** `dynamodb://TABLE?region=eu-west-1`, and with `&endpoint=http://127.0.0.1:8000` another server than AWS. */
  readonly url: string;
  /** Default: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. A function may give ones that expire. */
  readonly credentials?: CredentialSource<AwsCredentials>;
  /** Makes the table if it is missing, charged by request. Default false: a missing table is an error. */
  readonly createTable?: boolean;
  /** Requests in flight at once, reads and writes each. Default 64. */
  readonly concurrency?: number;
  /** Watches read their scope at this interval, and those reads are charged. Default: no watching. */
  readonly pollMs?: number;
  /** How far apart the clocks of DynamoDB's front ends may be. Default 2000. */
  readonly clockSkewMs?: number;
  /** Where credentials, region and endpoint are looked up. Default: the process's environment. */
  readonly variables?: Readonly<Record<string, string | undefined>>;
}

export interface DynamodbPlace {
  readonly table: string;
  readonly region: string;
  readonly endpoint: string;
  readonly credentials: CredentialSource<AwsCredentials>;
}

const EXAMPLE = "dynamodb://my-table?region=eu-west-1";

export function placeOf({
  url: text,
  variables = process.env,
  credentials,
}: DynamodbStoreOptions): DynamodbPlace {
  const shown = withoutPassword(text);
  if (typeof text !== "string" || !/^dynamodb:/i.test(text) || !URL.canParse(text))
    throw problem(`url must look like ${EXAMPLE}, got '${shown}'`);
  const url = new URL(text);
  if (url.username !== "" || url.password !== "")
    throw problem("url must not carry credentials: use the environment or the option `credentials`");
  if (!/^[A-Za-z0-9_.-]{3,255}$/.test(url.host) || !/^\/?$/.test(url.pathname))
    throw problem(
      `url must name a table of 3 to 255 letters, digits or '_', '-', '.', as in ${EXAMPLE}, got '${shown}'`,
    );
  const given = urlParameters("dynamodb", url, ["region", "endpoint"]);
  const { AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_DYNAMODB } = variables;
  const region = assertRegion("dynamodb", given.region ?? AWS_REGION ?? AWS_DEFAULT_REGION ?? "");
  const endpoint = assertEndpoint(
    "dynamodb",
    given.endpoint ?? AWS_ENDPOINT_URL_DYNAMODB ?? `https://dynamodb.${region}.amazonaws.com`,
  );
  const known = credentials ?? awsCredentialsFrom("dynamodb", variables);
  return { table: url.host, region, endpoint, credentials: known };
}

export function problem(message: string): StoreError {
  return configError(`dynamodb: ${message}`);
}
