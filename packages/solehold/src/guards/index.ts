/** `solehold/guards`: for the side that is written to: SQL, Redis, object storage, HTTP. */

export { FenceGate, type FenceMemory } from "./fence-gate.ts";
export { type FencedObject, FencedObjectWriter } from "./fenced-object-writer.ts";
export { FencedResource } from "./fenced-resource.ts";
export * from "./http.ts";
export * from "./postgres.ts";
export {
  FENCED_COMMANDS_SCRIPT,
  type FencedCommands,
  runFencedCommands,
  type ScriptClient,
} from "./redis.ts";
export { StaleFenceError } from "./stale-fence-error.ts";
