export { KeyFile, KeyFileError, type NewKey, type StoredKey } from "./access/key-file.ts";
export { ACTIONS, type Action } from "./access/principal.ts";
export * from "./main/config.ts";
export { type RunningServer, type ServerParts, startServer } from "./main/server.ts";
export type { ProblemBody, ProblemReason } from "./protocol/problem.ts";
export type { GrantedReply, WireLease } from "./protocol/schemas/leases.ts";
export { createLog, type Logger } from "./telemetry/log.ts";
