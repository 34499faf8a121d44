export { KeyFile, KeyFileError, type Keys, type NewKey, type StoredKey } from "./access/key-file.ts";
export { KeyStore } from "./access/key-store.ts";
export { ACTIONS, type Action } from "./access/principal.ts";
export * from "./main/config.ts";
export { type RunningServer, type ServerParts, startServer } from "./main/server.ts";
export { type ServiceManager, serviceManagerOf } from "./main/service-manager.ts";
export { createLog, type Logger } from "./telemetry/log.ts";
