/** The kit and the tests of the writer lease, on a real S3 server (Ceph). */
import { setTimeout as delay } from "node:timers/promises";
import { describe, it } from "vitest";
import { describeLeases, describeStore, type KitChild } from "../../../src/conformance/index.ts";
import type { LeaseStore } from "../../../src/store/index.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { ObjectNames } from "../../../src/stores/object/names.ts";
import { connectObjects } from "../../../src/stores/object/open.ts";
import { kitProcess } from "../../conformance/child.ts";
import { EFFORT } from "../../conformance/effort.ts";
import { faultyClient } from "../../conformance/faulty.ts";
import { describeWriterLease } from "../../writer/seed-tests.ts";
import { cephPlace, freshPrefix } from "./places.ts";

const prefix = freshPrefix();
const open = () => openObjectStore({ place: cephPlace(), prefix, timeoutMs: 20_000 });

const openFaulty = () =>
  faultyClient(cephPlace().endpoint ?? "", (endpoint) =>
    openObjectStore({ place: { ...cephPlace(), endpoint }, prefix, timeoutMs: 2_000 }),
  );

function s3Process(): KitChild {
  const { bucket, region, endpoint, credentials } = cephPlace();
  return kitProcess(`s3://${bucket}/${prefix}?endpoint=${endpoint}&region=${region}`, {
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  });
}

describeStore(
  "S3 (Ceph)",
  {
    open,
    openSecond: open,
    openFaulty,
    effort: EFFORT,
    patienceMs: 100_000,
    corrupt: async (key) => {
      const objects = await connectObjects(cephPlace());
      objects.quoting = "bare";
      const name = new ObjectNames(prefix).nameOf(key);
      const { object } = await objects.get(name);
      if (object === null) throw new Error("there is nothing to damage");
      await objects.putIfMatch(name, object.etag, Buffer.concat([object.bytes, Buffer.from("damage")]));
      objects.close();
    },
  },
  { describe, it },
);

// Most of their time is waiting for the end of leases.
describeLeases(
  "S3 (Ceph)",
  { open, openSecond: open, openFaulty, child: s3Process, effort: EFFORT, patienceMs: 100_000 },
  { describe, it: (title, run) => it.concurrent(title, run) },
);

/** The server's clock shows whole seconds, and a lease is stamped with the end of its second. */
async function passOnServer(store: LeaseStore, ms: number): Promise<void> {
  const key = { tenant: "default", name: "clock" };
  const nowMs = async () => (await store.read([key])).storeTimeMs ?? 0;
  const endMs = (await nowMs()) + ms + 2_000;
  while ((await nowMs()) < endMs) await delay(200);
}

describeWriterLease("S3 (Ceph)", {
  open: async () => {
    const store = await openObjectStore({ place: cephPlace(), prefix: freshPrefix(), timeoutMs: 20_000 });
    return { store, pass: (ms) => passOnServer(store, ms) };
  },
});
