/** `solehold/nats`: NATS JetStream key-value buckets, through @nats-io/transport-node and @nats-io/jetstream. */
import { realEnv } from "../../env/index.ts";
import { assertOptions } from "../support/options.ts";
import { loadNats } from "./client.ts";
import { type NatsStoreOptions, settingsFrom } from "./options.ts";
import { NatsStore } from "./store.ts";

export type { NatsStore, NatsStoreOptions };

/** Resolves when the server has answered and the bucket is there; rejects with a StoreError that says what to do. */
export async function openNatsStore(options: NatsStoreOptions): Promise<NatsStore> {
  assertOptions("openNatsStore", options, '{ url: "nats://localhost:4222" }');
  const settings = settingsFrom(options);
  return NatsStore.open(options.env ?? realEnv, await loadNats(), settings);
}
