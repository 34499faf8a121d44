/** The way through the lease service: a `LeaseManager` for clients, with purposes, limits and the audit behind it. */
import type {
  CallContext,
  CommandOutcome,
  DriftBound,
  LeaseKey,
  LeaseListing,
  LeaseManager,
  LeasePolicy,
  LeaseRequest,
  LeaseService,
  LeaseView,
  ListQuery,
  QueueTicket,
  ServiceReply,
  StoredRecord,
  StoreWatch,
  WatchListener,
  WatchScope,
} from "solehold/internal";
import { Attempts } from "./attempts.ts";

type Arguments<Op extends LeaseRequest["op"]> = Omit<Extract<LeaseRequest, { op: Op }>, "op">;

export class ServiceRoute implements LeaseManager {
  readonly line = "none";
  readonly service: LeaseService;
  readonly attempts = new Attempts();
  readonly #name: string;
  #count = 0;

  constructor(service: LeaseService, name: string) {
    this.service = service;
    this.#name = name;
  }

  get policy(): LeasePolicy {
    return this.service.manager.policy;
  }

  get drift(): DriftBound {
    return this.service.manager.drift;
  }

  acquire(request: Arguments<"acquire">): Promise<CommandOutcome> {
    return this.#attempt((context) => this.service.grant(request, context));
  }

  renew(request: Arguments<"renew">): Promise<CommandOutcome> {
    return this.#attempt((context) => this.service.renew(request, context));
  }

  release(request: Arguments<"release">): Promise<CommandOutcome> {
    return this.#attempt((context) => this.service.release(request, context));
  }

  use(request: Arguments<"use">): Promise<CommandOutcome> {
    return this.#attempt((context) => this.service.use(request, context));
  }

  resume(request: Arguments<"resume">): Promise<CommandOutcome> {
    return this.#attempt((context) => this.service.resume(request, context));
  }

  handOff(request: Arguments<"handoff">): Promise<CommandOutcome> {
    return this.#attempt((context) => this.service.handOff(request, context));
  }

  revoke(request: Arguments<"revoke">): Promise<CommandOutcome> {
    return this.#attempt((context) => this.service.revoke(request, context));
  }

  break(request: Arguments<"break">): Promise<CommandOutcome> {
    return this.#attempt((context) => this.service.break(request, context));
  }

  get(key: LeaseKey): Promise<LeaseView | null> {
    return this.service.get(key);
  }

  joinQueue(key: LeaseKey, listener: WatchListener): Promise<QueueTicket> | null {
    return this.service.manager.joinQueue?.(key, listener) ?? null;
  }

  heard(key: LeaseKey, stored: StoredRecord): void {
    this.service.manager.heard?.(key, stored);
  }

  isValid(key: LeaseKey, holder: string): Promise<boolean> {
    return this.service.manager.isValid(key, holder);
  }

  list(query: ListQuery): Promise<LeaseListing> {
    return this.service.list(query);
  }

  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch | null> {
    return this.service.manager.watch(scope, listener);
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.service.manager.close();
  }

  async #attempt(send: (context: CallContext) => Promise<ServiceReply>): Promise<CommandOutcome> {
    this.#count += 1;
    const traceId = `${this.#name}-${this.#count}`;
    this.attempts.begin(traceId);
    const { outcome } = await send({ traceId });
    this.attempts.end(traceId, outcome);
    return outcome;
  }
}
