/** Small tools to put a mistake around a part without touching it. */
import type {
  AuditEvent,
  AuditTrail,
  CommandOutcome,
  decide,
  LeaseCommand,
  LeaseExecutor,
  LeaseRecord,
  LeaseSnapshot,
  LeaseStore,
  StoreInstant,
} from "solehold/internal";
import type { Holding } from "../mutations.ts";

type Decide = typeof decide;

/** The same object with some members replaced; methods keep their own `this`. */
export function withMembers<Target extends object>(target: Target, members: Partial<Target>): Target {
  return new Proxy(target, {
    get: (inner, field) => {
      if (Object.hasOwn(members, field)) return Reflect.get(members, field);
      const value: unknown = Reflect.get(inner, field, inner);
      return typeof value === "function" ? value.bind(inner) : value;
    },
    has: (inner, field) => Object.hasOwn(members, field) || Reflect.has(inner, field),
  });
}

export function withCommand(change: (command: LeaseCommand, snapshot: LeaseSnapshot) => LeaseCommand) {
  return (real: Decide): Decide =>
    (command, snapshot, now, policy) => {
      const changed = change(command, snapshot);
      const next = changed.op === "release" ? changed.next : undefined;
      // What a release serves with its write is a command, too.
      const both = next === undefined ? changed : { ...changed, next: change(next, snapshot) as typeof next };
      return real(both as LeaseCommand, snapshot, now, policy);
    };
}

export function withSnapshot(change: (record: LeaseRecord, command: LeaseCommand) => LeaseRecord) {
  return (real: Decide): Decide =>
    (command, snapshot, now, policy) => {
      const { record } = snapshot;
      return real(
        command,
        { ...snapshot, record: record === null ? null : change(record, command) },
        now,
        policy,
      );
    };
}

export function withInstant(change: (now: StoreInstant, command: LeaseCommand) => StoreInstant) {
  return (real: Decide): Decide =>
    (command, snapshot, now, policy) =>
      real(command, snapshot, change(now, command), policy);
}

/** Changes the record that a decision writes. */
export function withWritten(
  change: (record: LeaseRecord, command: LeaseCommand, before: LeaseRecord | null) => LeaseRecord,
) {
  return (real: Decide): Decide =>
    (command, snapshot, now, policy) => {
      const decided = real(command, snapshot, now, policy);
      if (decided.effect.kind !== "write" || decided.decision.kind !== "granted") return decided;
      const { decision } = decided;
      const next = command.op === "release" ? command.next : undefined;
      const { next: served } = decision;
      const record =
        served === undefined
          ? change(decided.effect.record, command, snapshot.record)
          : change(decided.effect.record, next ?? command, decision.lease);
      const changed =
        served === undefined
          ? { ...decision, lease: record }
          : { ...decision, next: { ...served, lease: record } };
      return { ...decided, decision: changed, effect: { kind: "write", record } };
    };
}

/** Changes how grants and renewals are answered. */
export function withGrants(
  executor: LeaseExecutor,
  change: (outcome: CommandOutcome) => CommandOutcome,
): LeaseExecutor {
  return withMembers(executor, {
    execute: async (request, context) => {
      const outcome = await executor.execute(request, context);
      return request.op === "acquire" || request.op === "renew" ? change(outcome) : outcome;
    },
  });
}

/** A trail that leaves some events out, and says that they are safe. */
export function withoutEvents(trail: AuditTrail, isLeftOut: (event: AuditEvent) => boolean): AuditTrail {
  return withMembers(trail, {
    append: (event) => (isLeftOut(event) ? undefined : trail.append(event)),
  });
}

/** The store with another `apply`. */
export function withApply(store: LeaseStore, apply: LeaseStore["apply"]): LeaseStore {
  return withMembers(store, { apply });
}

/** A holder that believes until its signal says otherwise, and never reads a clock. */
export function heldUntilAborted(holding: Holding): Holding {
  const isHeld = (): boolean => !holding.lease.signal.aborted;
  return { ...holding, isHeld, remaining: () => (isHeld() ? Number.POSITIVE_INFINITY : 0) };
}
