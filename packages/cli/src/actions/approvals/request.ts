/** From the options of `approve` to the request that the service will build by itself. */
import {
  type ApprovalRequest,
  approvalRequestFor,
  approvalRequestProblem,
  DEFAULT_POLICY,
  type Env,
  type GuardedAction,
  given,
  randomId,
  SAFETY_TIERS,
} from "solehold/internal";
import type { Invocation } from "../../command.ts";
import { keyOf, tenantOf } from "../../connection.ts";
import { usageFailure } from "../../failure.ts";
import {
  durationOption,
  fenceOption,
  purposeOption,
  requiredDuration,
  requiredOption,
} from "../../parse/option-values.ts";

const GUARDED_ACTIONS = ["acquire", "revoke", "break"] as const satisfies readonly GuardedAction[];

export function requestFrom(invocation: Invocation, env: Env): ApprovalRequest {
  const { values } = invocation;
  const action = GUARDED_ACTIONS.find((known) => known === values.action) ?? "acquire";
  const tier = SAFETY_TIERS.find((known) => known === values.tier) ?? "Dangerous";
  const key = { tenant: tenantOf(invocation), name: keyOf(invocation) };
  const command = { action, key, ...detailsOf(invocation, action) };
  const request = approvalRequestFor(command, tier, values.nonce ?? randomId(env));
  const problem = approvalRequestProblem(request);
  if (problem !== null) throw usageFailure(`--${problem.field} ${problem.message}`);
  return request;
}

function detailsOf(invocation: Invocation, action: GuardedAction) {
  if (action === "acquire") {
    return {
      holder: requiredOption(invocation, "holder", "name who will hold the lease"),
      ttlMs: durationOption(invocation, "ttl", 1) ?? DEFAULT_POLICY.defaultTtlMs,
      ...given({ purpose: purposeOption(invocation) }),
    };
  }
  const ttlMs = action === "break" ? requiredDuration(invocation, "period", 0) : null;
  return given({ generation: fenceOption(invocation), ttlMs });
}
