/** From the options of `approve` to the request that the service will build by itself. */
import { DEFAULT_POLICY, DEFAULT_TENANT } from "solehold";
import {
  type ApprovalRequest,
  approvalRequestFor,
  approvalRequestProblem,
  type Env,
  type GuardedAction,
  randomId,
  SAFETY_TIERS,
} from "solehold/internal";
import type { Invocation } from "../command.ts";
import { keyOf } from "../connection.ts";
import { usageFailure } from "../failure.ts";
import { durationOption, fenceOption, purposeOption, requiredDuration, requiredOption } from "../values.ts";

export const ACTION_CHOICES = ["acquire", "revoke", "break"] as const satisfies readonly GuardedAction[];

export function requestFrom(invocation: Invocation, env: Env): ApprovalRequest {
  const { values, io } = invocation;
  const action = ACTION_CHOICES.find((known) => known === values.action) ?? "acquire";
  const tier = SAFETY_TIERS.find((known) => known === values.tier) ?? "Dangerous";
  const tenant = values.tenant ?? io.env.SOLEHOLD_TENANT ?? DEFAULT_TENANT;
  const key = { tenant, name: keyOf(invocation) };
  const nonce = values.nonce ?? randomId(env);
  const request = approvalRequestFor({ action, key, ...detailsOf(invocation, action) }, tier, nonce);
  const problem = approvalRequestProblem(request);
  if (problem !== null) throw usageFailure(`--${problem.field} ${problem.message}`);
  return request;
}

function detailsOf(invocation: Invocation, action: GuardedAction) {
  if (action === "acquire") {
    const purpose = purposeOption(invocation);
    return {
      holder: requiredOption(invocation, "holder", "name who will hold the lease"),
      ttlMs: durationOption(invocation, "ttl", 1) ?? DEFAULT_POLICY.defaultTtlMs,
      ...(purpose === null ? {} : { purpose }),
    };
  }
  const generation = fenceOption(invocation);
  return {
    ...(generation === null ? {} : { generation }),
    ...(action === "break" ? { ttlMs: requiredDuration(invocation, "period", 0) } : {}),
  };
}
