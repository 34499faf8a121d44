/** How access is refused: to a caller that is not known, and to one that may not do what it asks for. */
import type { ProblemInput } from "solehold/internal";
import { forbidden, ProblemError } from "../protocol/problem.ts";

/** `claimedId`: the id in the API key that was sent, which may be anybody's. */
export class NotAuthenticatedError extends ProblemError {
  readonly claimedId: string | null;

  constructor(input: ProblemInput, claimedId: string | null = null) {
    super(input);
    this.claimedId = claimedId;
  }
}

/** `subject`: the name of a lease, or the prefix of several. */
export class AccessDeniedError extends ProblemError {
  readonly action: string;
  readonly tenant: string;
  readonly subject: string;

  constructor(detail: string, action: string, tenant: string, subject: string) {
    super(forbidden(detail));
    this.action = action;
    this.tenant = tenant;
    this.subject = subject;
  }
}

export function unauthenticated(): ProblemInput {
  return {
    reason: "UNAUTHENTICATED",
    detail: "send a valid API key: 'authorization: Bearer shk_...' (made by: solehold keys add)",
    facts: { field: "authorization" },
  };
}
