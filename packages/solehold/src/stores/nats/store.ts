/**
 * NATS JetStream as a lease store: a key-value bucket whose revisions are the versions. All requests of a call are in
 * flight at once, and each is sent once. Records never expire in the bucket: a tombstone keeps the fence.
 *
 * The store has no clock (`clock: "none"`): JetStream shows a time only with what it stores, so a read with the time
 * would have to write. Leases end for others by observation. docs/stores/nats.md argues it.
 */
import { realEnv } from "../../env/index.ts";
import { fullCapabilities } from "../../store/index.ts";
import { assertOptions } from "../support/options.ts";
import { NatsCalls } from "./calls.ts";
import { loadNats } from "./client.ts";
import { listPage } from "./listing.ts";
import { type NatsStore, type NatsStoreOptions, settingsFrom } from "./options.ts";
import { readRecords } from "./reading.ts";
import { NatsWatching } from "./watching.ts";
import { applyWrites } from "./writing.ts";

/** Resolves when the server has answered and the bucket is there; rejects with a StoreError that says what to do. */
export async function openNatsStore(options: NatsStoreOptions): Promise<NatsStore> {
  const known = "url bucket replicas timeoutMs syncInterval connection";
  assertOptions("openNatsStore", options, '{ url: "nats://localhost:4222" }', known);
  const settings = settingsFrom(options);
  const env = options.env ?? realEnv;
  const calls = new NatsCalls(env, await loadNats(), settings);
  // The first attempt is the only one: a wrong address is an error at once.
  const joining = calls.call("not-applied", async ({ data }) => data.info.config);
  const { storage } = await joining.catch(async (error: unknown) => {
    await calls.close();
    throw error;
  });
  const watching = new NatsWatching(env, calls);
  return {
    name: "nats",
    capabilities: fullCapabilities({
      durable: settings.syncInterval === "always" && storage === "file",
      clock: "none",
      maxBatch: 128,
      // The server works on one call while the client prepares the next.
      maxConcurrentCalls: 2,
    }),
    read: (keys) => calls.call("not-applied", (session) => readRecords(session, keys)),
    apply: async (writes) => {
      const results = await calls.call("unknown", (session) => applyWrites(session, writes));
      return { storeTimeMs: null, results };
    },
    list: (query) => calls.call("not-applied", (session) => listPage(session, query)),
    watch: (scope, listener) => watching.watch(scope, listener),
    close: async () => {
      await watching.close();
      await calls.close();
    },
  };
}
