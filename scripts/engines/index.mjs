// Starts real servers for tests, and a proxy that loses, holds or cuts their traffic. The types are in index.d.mts.
export { startAzurite } from "./azurite.mjs";
export { startCeph } from "./ceph.mjs";
export { startDynalite } from "./dynalite.mjs";
export { startEtcd } from "./etcd.mjs";
export { startMariadb } from "./mariadb.mjs";
export { startNats } from "./nats.mjs";
export { startPostgres } from "./postgres.mjs";
export { engineNames } from "./programs.mjs";
export { startProxy } from "./proxy.mjs";
export { startRedis, startRedisSentinel } from "./redis.mjs";
export { readLiveState, stateFilePath } from "./state.mjs";
