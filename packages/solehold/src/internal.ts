/**
 * What Solehold's own server, command line and simulator are built of. Not a public API: it may change with any
 * release. Programs use the main entry.
 */
export * from "./approvals/index.ts";
export * from "./audit/disk.ts";
export * from "./audit/index.ts";
export * from "./audit/line-reader.ts";
export * from "./audit/query.ts";
export * from "./client/index.ts";
export * from "./core/index.ts";
export * from "./doctor/index.ts";
export * from "./env/index.ts";
export * from "./executor/index.ts";
export * from "./executor/repair.ts";
export * from "./executor/store-time.ts";
export * from "./executor/tombstone-gc.ts";
export * from "./guards/stale-fence-error.ts";
export * from "./layers/index.ts";
export * from "./placement/index.ts";
export * from "./remote/http-transport.ts";
export * from "./remote/remote-executor.ts";
export * from "./remote/replica-router.ts";
export * from "./remote/transport.ts";
export * from "./remote/websocket-transport.ts";
export * from "./store/index.ts";
export * from "./support/boot.ts";
export * from "./support/bounded-map.ts";
export * from "./support/folder-lock.ts";
export * from "./support/given.ts";
export * from "./support/heap.ts";
export * from "./support/process-identity.ts";
export * from "./waiting/index.ts";
export * from "./wire/index.ts";
