/**
 * A store that cannot be opened is refused in one line that says what to do: over all engines, what is wrong with the
 * URL, a package that is not installed, a place that cannot be written. (Passwords, buckets, servers that only read and
 * the folder of the embedded store: in the tests of each store.)
 */
import { spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, openStore } from "../../src/client/connect.ts";

const LIBRARY = join(import.meta.dirname, "../..");
const NOBODY = 65_534;
const AWS = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" };

interface Refusal {
  readonly url: string;
  readonly name: string;
  readonly kind: string;
  readonly message: string;
}

let root: string;
/** A copy of the build in a place where no package is installed. */
let alone: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "solehold-opening-"));
  chmodSync(root, 0o755);
  alone = join(root, "alone");
  mkdirSync(alone);
  cpSync(join(LIBRARY, "dist"), join(alone, "dist"), { recursive: true });
  cpSync(join(LIBRARY, "package.json"), join(alone, "package.json"));
  cpSync(join(import.meta.dirname, "refused.mjs"), join(alone, "refused.mjs"));
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

function refusals(
  urls: readonly string[],
  options: { readonly uid?: number } = {},
): Promise<readonly Refusal[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(alone, "refused.mjs"), ...urls], {
      env: { ...process.env, ...AWS },
      stdio: ["ignore", "pipe", "inherit"],
      ...options,
    });
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
    });
    child.once("error", reject);
    child.once("close", () => {
      resolve(
        output
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as Refusal),
      );
    });
  });
}

describe("a URL that is wrong", () => {
  it.each([
    ["nonsense", /has no scheme: use one of .*embedded:/],
    ["mongodb://host/db", /unknown scheme 'mongodb:': use one of .*postgres:/],
    ["memory:shared", /memory: has no address, got 'memory:shared'/],
    ["embedded:", /needs a folder, for example embedded:\.\/data/],
    ["embedded://./data", /embedded: has no host: write embedded:\.\/data or embedded:\/path/],
    ["file:", /needs a folder, for example file:\.\/data/],
    ["redis://", /must name a host, as in redis:\/\/host:6379\/0/],
    ["postgres:nonsense", /must begin with postgres:\/\//],
    ["mysql://host", /must name a host and a database, as in mysql:\/\/user:password@host:3306\/database/],
    ["mariadb:", /must name a host and a database, as in mysql:|must look like mysql:/],
    ["etcd://", /must name hosts/],
    ["nats://", /must look like nats:\/\//],
    [
      "s3://",
      /must name a bucket of 2 to 63 .* as in s3:\/\/my-bucket\/leases|credentials: set AWS_ACCESS_KEY_ID/,
    ],
    ["dynamodb://", /must name a table of 3 to 255 .* as in dynamodb:\/\/my-table\?region=eu-west-1/],
    ["azblob://", /must name a container of 2 to 63 .* as in azblob:\/\/my-container\/leases/],
    ["https+etag://", /must look like .*https\+etag:\/\/host\/path\//],
  ])("(%s) is refused in one line that shows a right one", async (url, message) => {
    const error: unknown = await openStore(url).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain("\n");
  });
});

it("an API key that no header can carry is refused, and not shown", async () => {
  for (const apiKey of ["s3cret\n", "s3 cret", "", 5 as never]) {
    const error: unknown = await connect("http://127.0.0.1:1", { apiKey }).catch((reason: unknown) => reason);
    expect((error as Error).message).toMatch(/^the API key must be a text without spaces and line breaks/);
  }
});

describe("a package that is not installed", () => {
  const PACKAGES: Readonly<Record<string, string>> = {
    "redis://127.0.0.1:1": "ioredis",
    "postgres://user:s3cret@127.0.0.1:1/db": "pg",
    // Later versions of Node have SQLite themselves.
    ...(process.version.startsWith("v20.")
      ? { [`embedded:${join(tmpdir(), "solehold-never-made")}`]: "@photostructure/sqlite" }
      : {}),
    "s3://bucket?endpoint=http://127.0.0.1:1": "aws4fetch",
    "mariadb://user:s3cret@127.0.0.1:1/db": "mysql2",
    "dynamodb://leases?region=eu-west-1": "aws4fetch",
    "nats://127.0.0.1:1": "@nats-io/transport-node",
    "etcd://127.0.0.1:1": "@grpc/grpc-js",
  };

  it("is named with the command that installs it, for every engine that needs one", async () => {
    const seen = await refusals(Object.keys(PACKAGES));
    expect(seen.map(({ url }) => url)).toEqual(Object.keys(PACKAGES));
    for (const { url, name, kind, message } of seen) {
      expect([url, name, kind]).toEqual([url, "StoreError", "config"]);
      expect(message).toContain(`npm install ${PACKAGES[url]}`);
      expect(message).not.toContain("\n");
      expect(message).not.toContain("s3cret");
    }
  });
});

describe("a folder that may not be written", () => {
  it("is named with what to do, by the file store", async () => {
    const sealed = join(root, "sealed");
    mkdirSync(sealed, { mode: 0o500 });
    // The administrator may do everything, so the question is asked as nobody.
    const options = process.getuid?.() === 0 ? { uid: NOBODY } : {};
    const url = `file:${sealed}`;
    expect(await refusals([url], options)).toEqual([
      {
        url,
        name: "StoreError",
        kind: "config",
        message: `the file store in '${sealed}': no permission to read and write: run as its owner or change its mode`,
      },
    ]);
  });
});
