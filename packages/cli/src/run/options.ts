/** The options that `run` and `elect` share, as the library and the keeper want them. */
import { type AcquireOptions, DEFAULT_POLICY } from "solehold";
import type { Invocation } from "../command.ts";
import { durationOption, purposeOption, waitOption } from "../values.ts";
import { ON_LOSS_CHOICES, type OnLoss, type StopPlan, stopPlan } from "./plan.ts";

export interface RunOptions {
  readonly acquire: AcquireOptions & { readonly ttl: number };
  readonly plan: StopPlan;
}

export function runOptions(invocation: Invocation): RunOptions {
  const { values } = invocation;
  const onLoss: OnLoss = ON_LOSS_CHOICES.find((choice) => choice === values["on-loss"]) ?? "term";
  const ttlMs = durationOption(invocation, "ttl", 1) ?? DEFAULT_POLICY.defaultTtlMs;
  const graceMs = durationOption(invocation, "grace", 0);
  const purpose = purposeOption(invocation);
  const wait = waitOption(invocation);
  const { note } = values;
  return {
    plan: stopPlan({ ttlMs, graceMs, onLoss }),
    acquire: {
      ttl: ttlMs,
      keepAlive: true,
      ...(purpose === null ? {} : { purpose }),
      ...(wait === null ? {} : { wait }),
      ...(note === undefined ? {} : { note }),
    },
  };
}
