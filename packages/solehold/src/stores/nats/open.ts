/** Opening: from options to a store that has reached its server once, and has its bucket. */
import { realEnv } from "../../env/index.ts";
import { assertOptions } from "../support/options.ts";
import { loadNats } from "./client.ts";
import { type NatsStoreOptions, settingsFrom } from "./options.ts";
import { NatsStore } from "./store.ts";

/** Resolves when the server has answered; rejects with a StoreError that says what to do. */
export async function openNatsStore(options: NatsStoreOptions): Promise<NatsStore> {
  assertOptions("openNatsStore", options, '{ url: "nats://localhost:4222" }');
  const settings = settingsFrom(options);
  return NatsStore.open({ env: options.env ?? realEnv, packages: await loadNats(), settings });
}
