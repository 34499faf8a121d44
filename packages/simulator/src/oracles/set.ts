/** All oracles of a run, asked in an order that matters: what is late is looked for before anybody is asked. */
import type { LeaseKey, LeasePolicy } from "solehold/internal";
import type { AppliedWrite } from "../store/engine.ts";
import { abortInTime } from "./abort-in-time.ts";
import { beliefHasRecord } from "./belief-has-record.ts";
import { claimable } from "./claimable.ts";
import { closedPeriods } from "./closed-periods.ts";
import { type FalseSuspicionOracle, falseSuspicion } from "./false-suspicion.ts";
import { fencesGrow } from "./fences-grow.ts";
import { guardedWrites } from "./guarded-writes.ts";
import { idempotency } from "./idempotency.ts";
import { linearizability } from "./linearizability.ts";
import { mutualBelief } from "./mutual-belief.ts";
import { noResurrection } from "./no-resurrection.ts";
import type { CallRecord, Oracle, OracleContext, ResourceStep } from "./oracle.ts";
import { type OwnershipOracle, ownership } from "./ownership.ts";
import { reservations } from "./reservations.ts";

export class OracleSet {
  readonly ownership: OwnershipOracle;
  readonly suspicion: FalseSuspicionOracle;
  readonly #linearizability: ReturnType<typeof linearizability>;
  readonly #all: readonly Oracle[];

  constructor(
    context: OracleContext,
    keys: readonly LeaseKey[],
    policy: LeasePolicy,
    more: readonly Oracle[] = [],
  ) {
    this.ownership = ownership(context);
    this.#linearizability = linearizability(context, keys);
    this.suspicion = falseSuspicion(context);
    this.#all = [
      abortInTime(context),
      this.suspicion,
      mutualBelief(context),
      fencesGrow(context),
      noResurrection(context),
      this.ownership,
      reservations(context),
      closedPeriods(context),
      guardedWrites(context),
      idempotency(context),
      beliefHasRecord(context),
      this.#linearizability,
      claimable(context, keys, policy),
      ...more,
    ];
  }

  /** Searches for an order that were given up: they prove nothing. */
  get givenUp(): number {
    return this.#linearizability.givenUp();
  }

  onWrite(write: AppliedWrite): void {
    for (const oracle of this.#all) oracle.onWrite?.(write);
  }

  onCallEnd(call: CallRecord): void {
    for (const oracle of this.#all) oracle.onCallEnd?.(call);
  }

  onResourceStep(step: ResourceStep): void {
    for (const oracle of this.#all) oracle.onResourceStep?.(step);
  }

  afterEvent(): void {
    for (const oracle of this.#all) oracle.afterEvent?.();
  }

  atEnd(): void {
    for (const oracle of this.#all) oracle.atEnd?.();
  }
}
