/**
 * The one error of the audit trail. `code` is stable and for programs, the message is for people and says
 * what to do. `retryable` means: the same call may succeed later without anybody changing it.
 */
export type AuditErrorCode =
  /** The event breaks a limit or has a field that may not be kept: a programmer's mistake. */
  | "AUDIT_EVENT_INVALID"
  | "AUDIT_OPTION_INVALID"
  /** Another living process writes to this folder. */
  | "AUDIT_LOCKED"
  /** What is on disk is not what a crash leaves behind: evidence, not to be written over. */
  | "AUDIT_DAMAGED"
  /** The disk refused. The entry may or may not be found after a crash; it was not confirmed. */
  | "AUDIT_WRITE_FAILED"
  | "AUDIT_READ_FAILED"
  /** More events wait for the disk than are allowed to. */
  | "AUDIT_OVERLOADED"
  | "AUDIT_CLOSED";

const RETRYABLE: ReadonlySet<AuditErrorCode> = new Set(["AUDIT_WRITE_FAILED", "AUDIT_OVERLOADED"]);

export class AuditError extends Error {
  override readonly name = "AuditError";
  readonly code: AuditErrorCode;
  readonly retryable: boolean;

  constructor(code: AuditErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = RETRYABLE.has(code);
  }
}

/** The system's own words (ENOSPC, EIO, ...) for use inside a longer sentence. */
export function describeCause(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
