/** What makes a request of the decision gate impossible to decide, before `core` sees it. */
import { type FieldProblem, isInstant, isObject, problemOf, type Untrusted } from "../core/field-problem.ts";
import {
  describeType,
  MAX_HOLDER_LENGTH,
  MAX_INSTANT_MS,
  MAX_TOKEN_LENGTH,
  nameProblem,
  type Reason,
  tokenProblem,
} from "../core/index.ts";
import { MAX_IDEMPOTENCY_KEY_LENGTH } from "../executor/index.ts";

export interface GateRefusal {
  readonly reason: Reason;
  readonly problem: FieldProblem;
}

const MAX_WORK_ORDER_LENGTH = 128;
const OPERATIONS = ["ACQUIRE", "RENEW", "RELEASE"];
const SNAPSHOT_FIELDS = ["activeLeaseOwnerId", "activeLeaseToken", "activeLeaseExpiresAt"] as const;

/** Total: any values may be passed. UPSTREAM_INPUT_MISSING where an input is not there at all. */
export function gateProblem(request: unknown, snapshot: unknown): GateRefusal | null {
  if (!isObject(request)) return missing("request", `must be an object, got ${describeType(request)}`);
  if (snapshot === undefined)
    return missing("snapshot", "is missing: pass null when persistence holds no lease for this work order");
  const problem = requestProblem(request) ?? snapshotProblem(snapshot);
  if (problem !== null) return { reason: "INPUT_SCHEMA_INVALID", problem };
  if (request.operation !== "ACQUIRE" || request.proposedToken !== undefined) return null;
  return missing("proposedToken", "is missing: an ACQUIRE needs the token that its grant will carry");
}

function requestProblem(request: Untrusted): FieldProblem | null {
  const { operation, workOrderId, now, leaseToken, proposedToken, idempotencyKey } = request;
  if (!OPERATIONS.includes(operation as string))
    return { field: "operation", message: `must be one of ${OPERATIONS.join(", ")}` };
  if (operation !== "ACQUIRE" && leaseToken === undefined)
    return { field: "leaseToken", message: `is required by ${String(operation)}` };
  return (
    problemOf("workOrderId", nameProblem(workOrderId, MAX_WORK_ORDER_LENGTH)) ??
    (leaseToken === undefined ? null : problemOf("leaseToken", tokenProblem(leaseToken, MAX_TOKEN_LENGTH))) ??
    (proposedToken === undefined
      ? null
      : problemOf("proposedToken", tokenProblem(proposedToken, MAX_TOKEN_LENGTH))) ??
    (idempotencyKey === undefined
      ? null
      : problemOf("idempotencyKey", nameProblem(idempotencyKey, MAX_IDEMPOTENCY_KEY_LENGTH))) ??
    problemOf("now", instantProblem(now))
  );
}

/** All three fields or none: a lease without owner, token or expiry cannot be judged. */
function snapshotProblem(snapshot: unknown): FieldProblem | null {
  if (snapshot === null) return null;
  if (!isObject(snapshot))
    return { field: "snapshot", message: `must be an object or null, got ${describeType(snapshot)}` };
  const absent = SNAPSHOT_FIELDS.filter((name) => snapshot[name] === undefined || snapshot[name] === null);
  if (absent.length > 0) {
    const message = `is incoherent: ${absent.join(" and ")} missing; it has all three fields, or is null`;
    return { field: "snapshot", message };
  }
  return (
    problemOf("activeLeaseOwnerId", nameProblem(snapshot.activeLeaseOwnerId, MAX_HOLDER_LENGTH)) ??
    problemOf("activeLeaseToken", tokenProblem(snapshot.activeLeaseToken, MAX_TOKEN_LENGTH)) ??
    problemOf("activeLeaseExpiresAt", instantProblem(snapshot.activeLeaseExpiresAt))
  );
}

function instantProblem(value: unknown): string | null {
  return isInstant(value) ? null : `must be whole milliseconds from 0 to ${MAX_INSTANT_MS}`;
}

function missing(field: string, message: string): GateRefusal {
  return { reason: "UPSTREAM_INPUT_MISSING", problem: { field, message } };
}
