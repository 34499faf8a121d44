/**
 * A `LeaseExecutor` that writes down every call: when it began, when it ended and how, for the oracles that
 * judge what callers were told. It changes nothing.
 */

import type {
  AppliedOutcome,
  CallContext,
  CommandOutcome,
  Env,
  Feature,
  LeaseExecutor,
  LeaseListing,
  LeaseRequest,
  LeaseView,
  ListQuery,
  StoredRecord,
  StoreWatch,
  WaitTickets,
  WatchListener,
  WatchScope,
} from "solehold/internal";
import {
  type DriftBound,
  keyId,
  type LeaseKey,
  type LeasePolicy,
  recordFence,
  StoreError,
} from "solehold/internal";
import type { CallRecord } from "../oracles/oracle.ts";
import type { World } from "../world/world.ts";

/** When the grant's holder must stop at the latest, on its own clocks. */
export interface BeliefLimit {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** What a run knows of all its processes' calls. */
export interface CallLog {
  readonly calls: CallRecord[];
  readonly generationOfToken: Map<string, bigint>;
  readonly tokenOfGrant: Map<string, string>;
  /** By process, key and fence. */
  readonly limits: Map<string, BeliefLimit>;
  readonly onEnd: (call: CallRecord) => void;
}

export class RecordingExecutor implements LeaseExecutor {
  readonly #inner: LeaseExecutor;
  readonly #log: CallLog;
  readonly #world: World;
  readonly #process: string;
  readonly #env: Env;

  constructor(options: {
    readonly inner: LeaseExecutor;
    readonly log: CallLog;
    readonly world: World;
    readonly process: string;
    readonly env: Env;
  }) {
    this.#inner = options.inner;
    this.#log = options.log;
    this.#world = options.world;
    this.#process = options.process;
    this.#env = options.env;
  }

  get policy(): LeasePolicy {
    return this.#inner.policy;
  }

  get drift(): DriftBound {
    return this.#inner.drift;
  }

  get features(): ReadonlySet<Feature> {
    return this.#inner.features;
  }

  async execute(request: LeaseRequest, context: CallContext = {}): Promise<CommandOutcome> {
    const call = this.#begin(request, context.wait === undefined ? "at once" : "queued");
    const next = request.op === "release" ? request.next?.request : undefined;
    const nextCall = next === undefined ? null : this.#begin(next, "at once");
    const outcome = await this.#inner.execute(request, context);
    if (outcome.kind === "applied") this.#remember(request, outcome);
    this.#end(call, outcome);
    if (next === undefined || nextCall === null) return outcome;
    const served = outcome.kind === "refused" ? undefined : outcome.next;
    if (served?.kind === "applied") this.#remember(next, served);
    this.#end(nextCall, served ?? (outcome.kind === "refused" ? PERHAPS_SERVED : NOT_SERVED));
    return outcome;
  }

  async read(key: LeaseKey): Promise<LeaseView | null> {
    const call = this.#begin({ op: "get", key }, "at once");
    const view = await this.#inner.read(key);
    this.#end(call, { kind: "view", view });
    return view;
  }

  list(query: ListQuery): Promise<LeaseListing> {
    return this.#inner.list(query);
  }

  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch | null> {
    return this.#inner.watch(scope, listener);
  }

  get tickets(): WaitTickets | undefined {
    return this.#inner.tickets;
  }

  onHint(key: LeaseKey, stored: StoredRecord): void {
    this.#inner.onHint?.(key, stored);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #begin(request: CallRecord["request"], patience: CallRecord["patience"]): CallRecord {
    const token = "token" in request ? request.token : undefined;
    const generation = token === undefined ? null : (this.#log.generationOfToken.get(token) ?? null);
    const call: CallRecord = {
      id: this.#log.calls.length,
      process: this.#process,
      request,
      patience,
      generation,
      startedMs: this.#world.nowMs,
      endedMs: null,
      outcome: null,
    };
    this.#log.calls.push(call);
    if (request.op !== "renew") this.#world.note(this.#process, request.op, () => keyId(request.key));
    return call;
  }

  #end(call: CallRecord, outcome: NonNullable<CallRecord["outcome"]>): void {
    call.endedMs = this.#world.nowMs;
    call.outcome = outcome;
    this.#world.note(this.#process, `${call.request.op} ${outcome.kind}`, () => describe(outcome));
    this.#log.onEnd(call);
  }

  #remember(request: LeaseRequest, outcome: AppliedOutcome): void {
    if (request.op !== "acquire" && request.op !== "renew") return;
    const { lease } = outcome.decision;
    const grant = `${keyId(lease.key)}@${recordFence(lease)}`;
    this.#log.generationOfToken.set(outcome.token, lease.generation);
    this.#log.tokenOfGrant.set(grant, outcome.token);
    const id = `${this.#process} ${grant}`;
    const { monotonicMs, wallMs } = outcome.believedFrom;
    const known = this.#log.limits.get(id);
    this.#log.limits.set(id, {
      monotonicMs: Math.max(known?.monotonicMs ?? 0, monotonicMs + outcome.validForMs),
      wallMs: Math.max(known?.wallMs ?? 0, wallMs + outcome.validForMs),
    });
    if (this.#env.monotonicMs() < monotonicMs) throw new Error("a belief cannot begin in the future");
  }
}

/** The release went alone: nothing was asked for the waiter that it would have served. */
const NOT_SERVED: CommandOutcome = {
  kind: "unsettled",
  outcome: "not-applied",
  cause: new StoreError("internal", "the release was written alone", { outcome: "not-applied" }),
};

/** An attempt whose reply was lost may have served the waiter before somebody else wrote. */
const PERHAPS_SERVED: CommandOutcome = {
  kind: "unsettled",
  outcome: "unknown",
  cause: new StoreError("internal", "the release was refused at last", { outcome: "unknown" }),
};

function describe(outcome: NonNullable<CallRecord["outcome"]>): string {
  switch (outcome.kind) {
    case "view":
      return outcome.view === null ? "nothing" : `${outcome.view.state} ${outcome.view.fence}`;
    case "applied":
      return `fence ${recordFence(outcome.decision.lease)} valid for ${outcome.validForMs} ms`;
    case "refused":
      return outcome.decision.reason;
    case "unsettled":
      return `${outcome.outcome}: ${outcome.cause.message}`;
  }
}
