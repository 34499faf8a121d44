/**
 * A `LeaseManager` that writes down every call: when it began, when it ended and how, for the oracles that
 * judge what callers were told. It changes nothing.
 */

import type {
  AppliedOutcome,
  CommandOutcome,
  Env,
  LeaseListing,
  LeaseManager,
  LeaseRequest,
  LeaseView,
  ListQuery,
  QueueTicket,
  StoredRecord,
  StoreWatch,
  WaitInLine,
  WatchListener,
  WatchScope,
} from "solehold/internal";
import { type DriftBound, keyId, type LeaseKey, type LeasePolicy, recordFence } from "solehold/internal";
import type { CallRecord } from "../oracles/oracle.ts";
import type { World } from "../world/world.ts";

type Arguments<Op extends LeaseRequest["op"]> = Omit<Extract<LeaseRequest, { op: Op }>, "op">;

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

export class RecordingManager implements LeaseManager {
  readonly line: "none" | "server";
  readonly #inner: LeaseManager;
  readonly #log: CallLog;
  readonly #world: World;
  readonly #process: string;
  readonly #env: Env;

  constructor(options: {
    readonly inner: LeaseManager;
    readonly log: CallLog;
    readonly world: World;
    readonly process: string;
    readonly env: Env;
  }) {
    this.#inner = options.inner;
    this.line = options.inner.line;
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

  acquire(request: Arguments<"acquire">, wait?: WaitInLine): Promise<CommandOutcome> {
    const patience = wait === undefined ? "at once" : "in line";
    return this.#command({ ...request, op: "acquire" }, () => this.#inner.acquire(request, wait), patience);
  }

  renew(request: Arguments<"renew">): Promise<CommandOutcome> {
    return this.#command({ ...request, op: "renew" }, () => this.#inner.renew(request));
  }

  release(request: Arguments<"release">): Promise<CommandOutcome> {
    return this.#command({ ...request, op: "release" }, () => this.#inner.release(request));
  }

  use(request: Arguments<"use">): Promise<CommandOutcome> {
    return this.#command({ ...request, op: "use" }, () => this.#inner.use(request));
  }

  resume(request: Arguments<"resume">): Promise<CommandOutcome> {
    return this.#command({ ...request, op: "resume" }, () => this.#inner.resume(request));
  }

  handOff(request: Arguments<"handoff">): Promise<CommandOutcome> {
    return this.#command({ ...request, op: "handoff" }, () => this.#inner.handOff(request));
  }

  revoke(request: Arguments<"revoke">): Promise<CommandOutcome> {
    return this.#command({ ...request, op: "revoke" }, () => this.#inner.revoke(request));
  }

  break(request: Arguments<"break">): Promise<CommandOutcome> {
    return this.#command({ ...request, op: "break" }, () => this.#inner.break(request));
  }

  async get(key: LeaseKey): Promise<LeaseView | null> {
    const call = this.#begin({ op: "get", key }, "at once");
    const view = await this.#inner.get(key);
    this.#end(call, { kind: "view", view });
    return view;
  }

  isValid(key: LeaseKey, holder: string): Promise<boolean> {
    return this.#inner.isValid(key, holder);
  }

  list(query: ListQuery): Promise<LeaseListing> {
    return this.#inner.list(query);
  }

  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch | null> {
    return this.#inner.watch(scope, listener);
  }

  joinQueue(key: LeaseKey, listener: WatchListener): Promise<QueueTicket> | null {
    return this.#inner.joinQueue?.(key, listener) ?? null;
  }

  heard(key: LeaseKey, stored: StoredRecord): void {
    this.#inner.heard?.(key, stored);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  async #command(
    request: LeaseRequest,
    send: () => Promise<CommandOutcome>,
    patience: CallRecord["patience"] = "at once",
  ): Promise<CommandOutcome> {
    const call = this.#begin(request, patience);
    const outcome = await send();
    if (outcome.kind === "applied") this.#remember(request, outcome);
    this.#end(call, outcome);
    return outcome;
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
