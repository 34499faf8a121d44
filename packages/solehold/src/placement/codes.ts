/**
 * The stable codes of this layer. The first four are the published ones; the others name what those four
 * would have blurred: an expired approval is not a forged one. Codes never change their meaning.
 */
import type { FieldProblem } from "../core/index.ts";

export const COORDINATOR_CODES = [
  "LC_NO_CANDIDATES",
  "LC_UNKNOWN_SIGNER",
  "LC_INVALID_SIGNATURE",
  "LC_BELOW_QUORUM",
  "LC_DUPLICATE_CANDIDATE",
  "LC_INVALID_CANDIDATE",
  "LC_INVALID_REQUEST",
  "LC_INVALID_KEY",
  "LC_KEY_NOT_VALID",
  "LC_APPROVAL_NOT_YET_VALID",
  "LC_APPROVAL_EXPIRED",
  "LC_APPROVAL_REPLAYED",
] as const;

export type CoordinatorCode = (typeof COORDINATOR_CODES)[number];

/**
 * Thrown only where a caller asks for bytes or a key that cannot exist: encoding, signing, importing.
 * Decisions (selection, quorum) never throw; they return what is wrong.
 */
export class CoordinatorError extends Error {
  override readonly name = "CoordinatorError";
  readonly code: CoordinatorCode;
  readonly field: string;

  /** The problem's message never holds a key or a signature. */
  constructor(code: CoordinatorCode, problem: FieldProblem) {
    super(`${code}: ${problem.field} ${problem.message}`);
    this.code = code;
    this.field = problem.field;
  }
}
