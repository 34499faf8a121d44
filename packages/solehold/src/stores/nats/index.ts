/** `solehold/nats`: NATS JetStream key-value buckets, through @nats-io/transport-node and @nats-io/jetstream. */
export type { NatsStore, NatsStoreOptions } from "./options.ts";
export { openNatsStore } from "./store.ts";
