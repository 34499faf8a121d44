/** The options that `run` and `elect` share, as the library and the supervisor want them. */
import type { AcquireOptions } from "solehold";
import { DEFAULT_POLICY, given } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { durationOption, purposeOption, sharing, waitOption } from "../parse/option-values.ts";
import { ON_LOSS_CHOICES, type OnLoss, type StopPlan, stopPlan } from "./plan.ts";

export interface RunOptions {
  readonly acquire: AcquireOptions & { readonly ttl: number; readonly wait: number | "forever" };
  readonly plan: StopPlan;
}

export function runOptions(invocation: Invocation): RunOptions {
  const { values } = invocation;
  const onLoss: OnLoss = ON_LOSS_CHOICES.find((choice) => choice === values["on-loss"]) ?? "term";
  const ttl = durationOption(invocation, "ttl", 1) ?? DEFAULT_POLICY.defaultTtlMs;
  const optional = given({
    purpose: purposeOption(invocation),
    note: values.note,
    ...sharing(invocation),
  });
  return {
    plan: stopPlan({ ttlMs: ttl, graceMs: durationOption(invocation, "grace", 0), onLoss }),
    acquire: { ttl, wait: waitOption(invocation), keepAlive: true, ...optional },
  };
}
