/** A page's program on the stores of the tests: the addresses that a page names lead to engines that are running. */
import { randomBytes } from "node:crypto";
import { openDynamodbStore } from "solehold/dynamodb";
import { type EngineName, engine, engineRecord } from "../../packages/solehold/test/engines/index.ts";
import { azuritePlace } from "../../packages/solehold/test/stores/object/places.ts";

interface Program {
  readonly code: string;
  /** What the program finds in its environment: credentials. */
  readonly env: Readonly<Record<string, string>>;
}

/** From the address in the pages to the engine behind it. */
const ADDRESSES: { readonly [address: string]: EngineName } = {
  "redis://localhost:6379": "redis",
  "postgres://localhost/app": "postgres",
  "mysql://localhost/app": "mariadb",
  "etcd://localhost:2379": "etcd",
  "nats://localhost:4222": "nats",
};

/** Where a program needs a place of its own, and credentials. */
const PLACES: { readonly [address: string]: () => Promise<{ address: string; env: Program["env"] }> } = {
  "dynamodb://leases?region=eu-west-1": async () => {
    const { url, credentials } = engineRecord("dynalite");
    const address = `dynamodb://docs-${randomBytes(6).toString("hex")}?region=eu-west-1&endpoint=${url}`;
    const env = awsVariables(credentials);
    const store = await openDynamodbStore({ url: address, createTable: true, variables: env });
    await store.close();
    return { address, env };
  },
  "s3://bucket/leases": async () => {
    const { url, credentials } = engineRecord("ceph");
    const { bucket, region } = credentials;
    const folder = `docs-${randomBytes(6).toString("hex")}`;
    const address = `s3://${bucket}/${folder}?endpoint=${url}&region=${region}`;
    return { address, env: awsVariables(credentials) };
  },
  "azblob://container/leases": async () => {
    const { account, container, endpoint } = await azuritePlace();
    const { accountKey = "" } = engineRecord("azurite").credentials;
    const env = { AZURE_STORAGE_ACCOUNT: account, AZURE_STORAGE_KEY: accountKey };
    return { address: `azblob://${container}/leases?endpoint=${endpoint}`, env };
  },
};

export async function programFor(shown: string, folder: string): Promise<Program> {
  let code = shown.replaceAll(/\b(embedded|file):\.\/(?:data|leases)\b/g, `$1:${folder}/$1`);
  let env = {};
  for (const [address, name] of Object.entries(ADDRESSES))
    if (code.includes(address)) code = code.replaceAll(address, engine(name).replace("http:", "etcd:"));
  for (const [address, open] of Object.entries(PLACES)) {
    if (!code.includes(`"${address}"`)) continue;
    const place = await open();
    code = code.replaceAll(address, place.address);
    env = { ...env, ...place.env };
  }
  return { code, env };
}

function awsVariables({ accessKeyId = "", secretAccessKey = "" }: Readonly<Record<string, string>>) {
  return { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
}
