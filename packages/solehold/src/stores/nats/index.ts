/** `solehold/nats`: NATS JetStream key-value buckets, through @nats-io/transport-node and @nats-io/jetstream. */
export { openNatsStore } from "./open.ts";
export type { NatsStoreOptions } from "./options.ts";
export type { NatsStore } from "./store.ts";
