/** The parts of the library that pages use: pure, and without anything of Node. Not a public API: as `internal`. */
export { describeFailure, type VerificationFailure } from "./approvals/failures.ts";
export type { AuditEntry, AuditEvent } from "./audit/entry.ts";
export * from "./audit/history.ts";
export * from "./audit/in-words.ts";
export { REASONS, type Reason } from "./core/reasons.ts";
export { type SseEvent, SseParser } from "./wire/sse.ts";
