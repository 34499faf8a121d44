/** `solehold/etcd`: an etcd cluster. It needs the package @grpc/grpc-js. */
export { openEtcdStore } from "./open.ts";
export type { EtcdStoreOptions } from "./options.ts";
export type { EtcdStore } from "./store.ts";
