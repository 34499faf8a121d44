// What a caller without a type checker gets for the most likely mistake.
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openDynamodbStore } from "../../../src/stores/dynamodb/index.ts";
import { openEtcdStore } from "../../../src/stores/etcd/index.ts";
import { openFileStore } from "../../../src/stores/file/index.ts";
import { openMysqlStore } from "../../../src/stores/mysql/index.ts";
import { openNatsStore } from "../../../src/stores/nats/index.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { openPostgresStore } from "../../../src/stores/postgres/index.ts";
import { openRedisStore } from "../../../src/stores/redis/index.ts";
import { openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { rejection } from "../records.ts";

const OPENERS: Readonly<Record<string, (options: never) => Promise<unknown>>> = {
  openDynamodbStore,
  openEmbeddedStore,
  openEtcdStore,
  openFileStore,
  openMysqlStore,
  openNatsStore,
  openObjectStore,
  openPostgresStore,
  openRedisStore,
};

describe.each(Object.entries(OPENERS))("%s", (name, open) => {
  it("says what it wants when it is given nothing, or the address by itself, and repeats no password", async () => {
    for (const given of [undefined, null, "redis://user:s3cret@host"]) {
      const error = await rejection(open(given as never));
      expect(error).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
      expect(error.message).toContain(`${name}: the options must be an object, as in {`);
      expect(error.message).not.toContain("s3cret");
    }
  });

  it("says what is missing when it is given no address", async () => {
    const error = await rejection(open({} as never));
    expect(error).toMatchObject({ name: "StoreError", kind: "config" });
    expect(error.message).toMatch(/url|URL|folder/);
  });

  it("names an option that does not exist, and those that do", async () => {
    const isFolder = name === "openFileStore" || name === "openEmbeddedStore";
    const address = isFolder
      ? { folder: join(tmpdir(), "solehold-never-made") }
      : { url: "redis://user:s3cret@host" };
    const error = await rejection(open({ ...address, timeoutms: 5 } as never));
    expect(error).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
    expect(error.message).toMatch(/^\w+ has no option 'timeoutms': it knows (folder|url),.* env$/);
    expect(error.message.startsWith(name)).toBe(true);
  });
});
