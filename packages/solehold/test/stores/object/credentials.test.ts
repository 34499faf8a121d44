/** Credentials that expire: S3 session tokens, and SAS and bearer tokens of Azure. */
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AwsCredentials, AzureCredentials } from "../../../src/stores/object/index.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { applyOne, create, recordOf, rejection, writeOf } from "../records.ts";
import { FakeServer, type SentRequest } from "./fake-server.ts";
import { azuritePlace } from "./places.ts";

const HOUR_MS = 3_600_000;
let server: FakeServer;
let endpoint: string;

beforeEach(async () => {
  server = new FakeServer();
  endpoint = (await server.start()).replace("http+etag:", "http:");
});

afterEach(() => server.stop());

const s3Place = (credentials: AwsCredentials | (() => AwsCredentials | Promise<AwsCredentials>)) =>
  ({ kind: "s3", bucket: "bucket", region: "us-east-1", endpoint, credentials }) as const;

/** Numbered, each with its own session token: "token-1", "token-2". */
function numbered(expiresAt?: () => Date | number): { calls: number; get: () => Promise<AwsCredentials> } {
  const source = {
    calls: 0,
    get: async (): Promise<AwsCredentials> => {
      source.calls += 1;
      return {
        accessKeyId: "id",
        secretAccessKey: "secret",
        sessionToken: `token-${source.calls}`,
        ...(expiresAt === undefined ? {} : { expiresAt: expiresAt() }),
      };
    },
  };
  return source;
}

const tokenOf = ({ headers }: SentRequest) => headers["x-amz-security-token"];
const lastToken = () => tokenOf(server.requests.at(-1)!);
const key = recordOf("db").key;

describe("a machine whose clock is an hour behind", () => {
  it("signs by the server's clock after the first refusal", async () => {
    const nowMs = Date.now() + HOUR_MS;
    const hour = new Date(nowMs).toISOString().slice(0, 13).replaceAll("-", "");
    server.manners.nowMs = () => nowMs;
    const isSkewed = ({ headers }: SentRequest) => !String(headers["x-amz-date"]).startsWith(hour);
    server.manners.refuse = (request) =>
      isSkewed(request) ? { status: 403, code: "RequestTimeTooSkewed" } : null;
    const place = s3Place({ accessKeyId: "id", secretAccessKey: "secret" });
    const store = await openObjectStore({ place });
    await create(store, recordOf("db"));
    expect(server.requests.map(isSkewed).indexOf(false)).toBe(1);
    expect(server.requests.filter(isSkewed)).toHaveLength(1);
  });
});

describe("S3 credentials from a function", () => {
  it("are asked for once and sent, with their session token, in every request", async () => {
    const source = numbered(() => Date.now() + HOUR_MS);
    const store = await openObjectStore({ place: s3Place(source.get) });
    await Promise.all([store.read([key]), store.read([key])]);
    expect(source.calls).toBe(1);
    expect(new Set(server.requests.map(tokenOf))).toEqual(new Set(["token-1"]));
  });

  it("are replaced before they expire, without anybody waiting for it", async () => {
    const ends = [Date.now() + 30_000, Date.now() + HOUR_MS];
    const source = numbered(() => new Date(ends[source.calls - 1] ?? 0));
    const store = await openObjectStore({ place: s3Place(source.get) });
    await store.read([key]);
    expect([source.calls, lastToken()]).toEqual([2, "token-2"]);
    expect(tokenOf(server.requests[0]!)).toBe("token-1");
  });

  it("that have expired are not sent any more, and a failing function is an error that says so", async () => {
    let failing = false;
    const source = numbered(() => Date.now() - 1);
    const get = async () => (failing ? Promise.reject(new Error("no\nrole")) : source.get());
    const store = await openObjectStore({ place: s3Place(get) });
    failing = true;
    expect(await rejection(store.apply([writeOf(recordOf("db"))]))).toMatchObject({
      kind: "auth",
      outcome: "not-applied",
      message: expect.stringMatching(/there are no credentials \(no role\): check the function/),
    });
  });

  it("that still hold are used while the function fails", async () => {
    let failing = false;
    const source = numbered(() => Date.now() + 30_000);
    const get = async () => (failing ? Promise.reject(new Error("down")) : source.get());
    const store = await openObjectStore({ place: s3Place(get) });
    failing = true;
    await create(store, recordOf("db"));
  });

  it.each([400, 403])(
    "are replaced when the server says %i ExpiredToken, and the write is done",
    async (status) => {
      const source = numbered();
      const store = await openObjectStore({ place: s3Place(source.get) });
      server.manners.refuse = (request) =>
        tokenOf(request) === "token-1" ? { status, code: "ExpiredToken" } : null;
      server.requests.length = 0;
      const writes = ["a", "b", "c"].map((name) => applyOne(store, writeOf(recordOf(name))));
      expect((await Promise.all(writes)).map(({ kind }) => kind)).toEqual(["applied", "applied", "applied"]);
      expect([source.calls, server.requests.length]).toEqual([2, 6]);
    },
  );

  it("are asked for once more, not for ever, when the new ones are refused as well", async () => {
    const source = numbered();
    const store = await openObjectStore({ place: s3Place(source.get) });
    server.manners.refuse = () => ({ status: 403, code: "ExpiredToken" });
    const before = source.calls;
    expect(await rejection(store.read([key]))).toMatchObject({ kind: "auth" });
    expect(source.calls).toBe(before + 1);
  });

  it.each<[string, unknown, RegExp]>([
    ["nothing", undefined, /there are no credentials \(undefined is not an object\)/],
    ["no secret", { accessKeyId: "a" }, /the credentials are wrong: secretAccessKey/],
    [
      "a date that is none",
      { accessKeyId: "a", secretAccessKey: "b", expiresAt: "soon" },
      /expiresAt is neither/,
    ],
  ])("that are wrong are named: %s", async (_what, given, message) => {
    const error = await rejection(openObjectStore({ place: s3Place(() => given as AwsCredentials) }));
    expect(error.message).toMatch(message);
    expect(error).toMatchObject({ name: "StoreError", outcome: "not-applied" });
  });

  it("that never come end with the timeout", async () => {
    const place = s3Place(() => new Promise<AwsCredentials>(() => undefined));
    expect(await rejection(openObjectStore({ place, timeoutMs: 50 }))).toMatchObject({
      kind: "auth",
      message: expect.stringContaining("no answer within 50 ms"),
    });
  });
});

describe("S3 credentials that are fixed", () => {
  it("and have expired are an error that says to pass a function", async () => {
    server.manners.refuse = () => ({ status: 400, code: "ExpiredToken" });
    const place = s3Place({ accessKeyId: "id", secretAccessKey: "secret", sessionToken: "old" });
    expect(await rejection(openObjectStore({ place }))).toMatchObject({
      kind: "auth",
      message: expect.stringContaining("pass as credentials a function"),
    });
  });

  it("come from the environment, session token included", async () => {
    const variables = {
      AWS_ACCESS_KEY_ID: "id",
      AWS_SECRET_ACCESS_KEY: "secret",
      AWS_SESSION_TOKEN: "from-environment",
    };
    await openObjectStore({ url: `s3://bucket?endpoint=${endpoint}`, variables });
    expect(lastToken()).toBe("from-environment");
  });
});

describe("Azure", () => {
  const openAzure = (credentials: AzureCredentials | (() => AzureCredentials)) =>
    openObjectStore({ place: { kind: "azblob", container: "box", account: "acc", endpoint, credentials } });

  it("takes a bearer token, and another when the server says 401", async () => {
    let calls = 0;
    const store = await openAzure(() => {
      calls += 1;
      return { bearerToken: `token-${calls}` };
    });
    server.manners.refuse = ({ headers }) =>
      headers.authorization === "Bearer token-1" ? { status: 401, code: "InvalidAuthenticationInfo" } : null;
    await create(store, recordOf("db"));
    expect([calls, server.requests.at(-1)?.headers.authorization]).toEqual([2, "Bearer token-2"]);
  });

  it("takes no credentials that are none", async () => {
    const error = await rejection(openAzure({} as AzureCredentials));
    expect(error.message).toContain("accountKey, sasToken or bearerToken is required");
  });

  it("takes a SAS on the real service, with and without its question mark", async () => {
    const place = await azuritePlace();
    const { accountKey } = place.credentials as { accountKey: string };
    const sasToken = accountSas(place.account, accountKey);
    const store = await openObjectStore({ place: { ...place, credentials: { sasToken } } });
    await create(store, recordOf("db"));
    const page = await store.list?.({ tenant: "default", prefix: "", limit: 10 });
    expect(page?.records.map(({ key: { name } }) => name)).toEqual(["db"]);
    const again = await openObjectStore({
      place: { ...place, credentials: async () => ({ sasToken: `?${sasToken}` }) },
    });
    expect((await again.read([key])).records[0]?.kind).toBe("found");
  });
});

/** As the portal makes it: blobs and containers, read, write, delete, list, add and create, for an hour. */
function accountSas(account: string, accountKey: string): string {
  const expiry = new Date(Date.now() + HOUR_MS).toISOString().replace(/\.\d+/, "");
  const version = "2019-12-12";
  const fields = [account, "rwdlac", "b", "co", "", expiry, "", "https,http", version, ""];
  const signature = createHmac("sha256", Buffer.from(accountKey, "base64"))
    .update(fields.join("\n"))
    .digest("base64");
  const query = {
    sv: version,
    ss: "b",
    srt: "co",
    sp: "rwdlac",
    se: expiry,
    spr: "https,http",
    sig: signature,
  };
  return new URLSearchParams(query).toString();
}
