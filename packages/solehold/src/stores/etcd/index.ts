/** `solehold/etcd`: an etcd cluster. It needs the package @grpc/grpc-js. */
export type { EtcdStore, EtcdStoreOptions } from "./options.ts";
export { openEtcdStore } from "./store.ts";
