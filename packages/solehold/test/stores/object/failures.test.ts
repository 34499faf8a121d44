/** What goes wrong between us and a real server, and what is said about it: one line each. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import { Leases } from "../../../src/client/leases.ts";
import { realEnv } from "../../../src/env/index.ts";
import { StoreExecutor } from "../../../src/executor/index.ts";
import { decorateStore, StoreError } from "../../../src/store/index.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { WriterLeaseStore } from "../../../src/writer/index.ts";
import { type Engine, startAzurite, startCeph, startProxy } from "../../engines/index.ts";
import { azuritePlace, cephPlace } from "./places.ts";

let ceph: Engine;
let azurite: Engine;

beforeAll(async () => {
  ceph = await startCeph();
  azurite = await startAzurite();
});

afterAll(async () => {
  await ceph?.stop();
  await azurite?.stop();
});

/** The variables and the URL, as a user would write them. */
function s3Url(changes: { bucket?: string; endpoint?: string; secret?: string; key?: string } = {}) {
  const { bucket, region, endpoint, credentials } = cephPlace(ceph);
  return {
    url: `s3://${changes.bucket ?? bucket}?endpoint=${changes.endpoint ?? endpoint}&region=${region}`,
    variables: {
      AWS_ACCESS_KEY_ID: changes.key ?? credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: changes.secret ?? credentials.secretAccessKey,
    },
  };
}

async function failing(open: Promise<unknown>): Promise<StoreError> {
  const error = await open.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof StoreError)) throw new Error(`expected a StoreError, got ${String(error)}`);
  expect(error.message).not.toContain("\n");
  expect(error.outcome).toBe("not-applied");
  return error;
}

describe("an S3 place that is wrong is an error of one line:", () => {
  it("a missing bucket", async () => {
    const error = await failing(openObjectStore(s3Url({ bucket: "no-such-bucket" })));
    expect([error.kind, error.message]).toEqual([
      "config",
      expect.stringMatching(/^S3 bucket 'no-such-bucket' at .*create the bucket or correct its name/),
    ]);
  });

  it("a wrong secret, which the message does not show", async () => {
    const error = await failing(openObjectStore(s3Url({ secret: "not-the-secret" })));
    expect([error.kind, error.message]).toEqual(["auth", expect.stringContaining("AWS_SECRET_ACCESS_KEY")]);
    expect(error.message).not.toContain("not-the-secret");
  });

  it("an unknown access key", async () => {
    expect((await failing(openObjectStore(s3Url({ key: "NOBODY" })))).kind).toBe("auth");
  });

  it("an endpoint where nothing listens", async () => {
    const proxy = await startProxy({ targetPort: 9 });
    const endpoint = `http://127.0.0.1:${proxy.port}`;
    await proxy.close();
    const error = await failing(openObjectStore(s3Url({ endpoint })));
    expect([error.kind, error.message]).toEqual(["unreachable", expect.stringContaining("nothing listens")]);
  });
});

describe("an Azure place that is wrong is an error of one line:", () => {
  it("a missing container, a wrong key", async () => {
    const place = await azuritePlace(azurite);
    const missing = await failing(openObjectStore({ place: { ...place, container: "missing" } }));
    expect([missing.kind, missing.message]).toEqual([
      "config",
      expect.stringContaining("create the container"),
    ]);
    const wrong = await failing(
      openObjectStore({ place: { ...place, credentials: { accountKey: "d3Jvbmc=" } } }),
    );
    expect([wrong.kind, wrong.message]).toEqual(["auth", expect.stringContaining("AZURE_STORAGE_KEY")]);
  });
});

describe("a reply that got lost", () => {
  it("of an applied acquire leaves the caller with that grant, not locked out", async () => {
    const { endpoint, ...place } = cephPlace(ceph);
    const proxy = await startProxy({ targetPort: Number(new URL(endpoint ?? "").port) });
    const through = { ...place, endpoint: proxy.through(endpoint ?? "") };
    const store = await openObjectStore({ place: through, prefix: "lost-reply", timeoutMs: 1_500 });
    let lost = 0;
    const losing = decorateStore(store, {
      apply: async (writes) => {
        if (writes[0]?.key.name !== "job" || lost > 0) return await store.apply(writes);
        lost += 1;
        proxy.dropReplies();
        const reply = store.apply(writes).finally(() => proxy.heal());
        await expect(reply).rejects.toMatchObject({ kind: "timeout", outcome: "unknown" });
        return await reply;
      },
    });
    const executor = new StoreExecutor({ store: losing });
    const leases = new Leases({ executor, env: realEnv, holder: "us" });
    await leases.tryAcquire("warm");
    const attempt = await leases.tryAcquire("job", { ttl: "60s" });
    expect(attempt).toMatchObject({ ok: true });
    const [stored] = (await store.read([{ tenant: "default", name: "job" }])).records;
    expect(stored).toMatchObject({ kind: "found", record: { holder: "us", renewals: 0 } });
    expect(lost).toBe(1);
    await leases.close();
    await proxy.close();
  });
});

describe("a server that stands still", () => {
  it("makes writes unknown and reads fail within the timeout, and works again afterwards", async () => {
    const store = await openObjectStore({ ...s3Url(), timeoutMs: 1_500 });
    const leases = new WriterLeaseStore({ store });
    const lease = await leases.tryAcquire("frozen", "writer-a", 60_000);
    const key = { tenant: "default", name: "frozen" };
    const [stored] = (await store.read([key])).records;
    if (stored?.kind !== "found") throw new Error("the lease is missing");
    await ceph.pause();
    try {
      const next = { ...stored.record, nonce: "while-frozen" };
      await expect(store.apply([{ key, expected: stored.version, next }])).rejects.toMatchObject({
        kind: "timeout",
        outcome: "unknown",
      });
      await expect(store.read([key])).rejects.toMatchObject({ kind: "timeout", outcome: "not-applied" });
    } finally {
      await ceph.resume();
    }
    await expect
      .poll(() =>
        store.read([key]).then(
          ({ records }) => records[0]?.kind,
          () => "failed",
        ),
      )
      .toBe("found");
    expect((await leases.refresh(lease, 60_000)).generation).toBe(1n);
    await store.close();
  });
});

describe("a URL", () => {
  it("of S3 opens leases through connect", async () => {
    const { url, variables } = s3Url();
    const before = { ...process.env };
    Object.assign(process.env, variables);
    try {
      const leases = await connect(url);
      expect((await leases.tryAcquire("by-url")).ok).toBe(true);
      await leases.close();
    } finally {
      for (const name of Object.keys(variables)) delete process.env[name];
      Object.assign(process.env, before);
    }
  });
});
