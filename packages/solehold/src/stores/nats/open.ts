/** Opening: from options to a store that has reached its server once, and has its bucket. */
import { realEnv } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import { assertOptions } from "../support/options.ts";
import type { NatsPackage } from "./client.ts";
import { NatsConnection } from "./connection.ts";
import { type NatsStoreOptions, settingsFrom } from "./options.ts";
import { NatsStore } from "./store.ts";

/** Resolves when the server has answered; rejects with a StoreError that says what to do. */
export async function openNatsStore(options: NatsStoreOptions): Promise<NatsStore> {
  assertOptions("openNatsStore", options, '{ url: "nats://localhost:4222" }');
  const settings = settingsFrom(options);
  const env = options.env ?? realEnv;
  const connection = await NatsConnection.open(env, await loadNats(), settings);
  try {
    return await NatsStore.open({ env, connection, settings });
  } catch (error) {
    connection.close();
    throw error;
  }
}

async function loadNats(): Promise<NatsPackage> {
  try {
    return (await import("@nats-io/transport-node")) as unknown as NatsPackage;
  } catch (cause) {
    throw new StoreError(
      "config",
      "nats: the package @nats-io/transport-node is missing: run `npm install @nats-io/transport-node`",
      { outcome: "not-applied", cause },
    );
  }
}
