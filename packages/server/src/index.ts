export { KeyFile, KeyFileError, type NewKey, type StoredKey } from "./access/key-file.ts";
export { ACTIONS, type Action } from "./access/principal.ts";
export * from "./config.ts";
export type { ProblemBody, ProblemReason } from "./problem.ts";
export type { GrantedReply, WireLease } from "./schemas/leases.ts";
export { type RunningServer, type ServerParts, startServer } from "./server.ts";
export { createLog, type Logger } from "./telemetry/log.ts";
