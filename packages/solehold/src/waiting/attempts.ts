/**
 * The attempts of a queue: who may ask, what is asked for the first waiter, and what an answer means for it and for those
 * behind it. When something is asked is the queue's business (key-queue.ts).
 */
import type { LeaseKey } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import type {
  CallContext,
  CommandOutcome,
  LeaseExecutor,
  LeaseView,
  ReleaseRequest,
} from "../executor/index.ts";
import type { KeyTickets } from "./key-tickets.ts";
import { asUnsettled, isWorthWaiting } from "./outcomes.ts";
import type { SlotsStatus } from "./slots-status.ts";
import type { Waiter, WaitRequest } from "./waiter.ts";
import type { WaiterList } from "./waiter-list.ts";

export interface AttemptsOptions {
  readonly env: Env;
  readonly next: LeaseExecutor;
  readonly isDraining: () => boolean;
  readonly list: WaiterList;
  readonly status: SlotsStatus;
  readonly tickets: () => KeyTickets | null;
}

/** How an attempt or a look ended for the queue. */
export type Step = "ask again" | "wait" | "unreachable";

export class Attempts {
  readonly #options: AttemptsOptions;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  /** Who may ask: the successor that the lease is being handed to, else the first. */
  get first(): Waiter | undefined {
    const { status, list } = this.#options;
    const { successor } = status;
    const named =
      successor === null ? undefined : list.all.find(({ request }) => request.holder === successor);
    return named ?? list.all[0];
  }

  execute(waiter: Waiter): Promise<CommandOutcome> {
    const nowMs = this.#nowMs();
    return this.#options.next.execute(this.#ticketed(waiter.timed(nowMs)), waiter.contextAt(nowMs));
  }

  async ask(): Promise<Step> {
    const waiter = this.first;
    if (waiter === undefined) return "wait";
    waiter.phase = "trying";
    return await this.#conclude(waiter, await this.execute(waiter).catch(asUnsettled));
  }

  /** A read costs no entry in the audit; only a lease that may be free is asked for. */
  async look(): Promise<Step> {
    const { status, next } = this.#options;
    const read = (key: LeaseKey): Promise<LeaseView | null> => next.read(key).catch(() => null);
    const found = await Promise.all(status.keys.map(read));
    const views = found.flatMap((view) => (view?.live === true ? [view] : []));
    if (views.length < found.length) return await this.ask();
    const nowMs = this.#nowMs();
    status.onViews(views, nowMs);
    if (views.some((view) => status.isStale(view, nowMs))) return await this.ask();
    status.onLooked(nowMs);
    return "wait";
  }

  /** A release that serves this waiter with the same write. */
  handOver(
    waiter: Waiter,
    request: ReleaseRequest,
    context: CallContext,
  ): { readonly released: Promise<CommandOutcome>; readonly step: Promise<Step> } {
    waiter.phase = "trying";
    const acquire = { ...this.#ticketed(waiter.request), key: request.key };
    const next = { request: acquire, context: waiter.contextAt(this.#nowMs()) };
    const released = this.#options.next.execute({ ...request, next }, context);
    return { released, step: released.then((outcome) => this.#concludeHandOver(waiter, outcome)) };
  }

  #ticketed(request: WaitRequest): WaitRequest {
    const ticket = this.#options.tickets()?.own ?? "";
    return ticket === "" ? request : { ...request, ticket };
  }

  async #conclude(waiter: Waiter, outcome: CommandOutcome): Promise<Step> {
    const { status, list, tickets, isDraining } = this.#options;
    const nowMs = this.#nowMs();
    status.onOutcome(outcome, nowMs);
    if (outcome.kind === "applied") tickets()?.onRecord(outcome.decision.lease);
    waiter.remember(outcome);
    const worthWaiting = isWorthWaiting(outcome);
    if (waiter.phase === "left") {
      if (await list.releaseUnclaimed(waiter, outcome)) return "ask again";
    } else {
      const isOver = waiter.phase === "overdue" || nowMs >= waiter.untilMs;
      waiter.phase = "waiting";
      if (!worthWaiting || isOver) list.leave(waiter, outcome);
      else if (isDraining()) list.end(waiter, "draining");
      else list.arm(waiter);
    }
    // A request that was refused for its own sake says nothing about those behind it: they ask at once.
    if (outcome.kind === "refused" && !worthWaiting) return "ask again";
    status.onLooked(nowMs);
    // The successor of a handoff may be further back.
    if (outcome.kind === "refused" && waiter.phase === "waiting" && this.first !== waiter) return "ask again";
    return outcome.kind === "unsettled" ? "unreachable" : "wait";
  }

  async #concludeHandOver(waiter: Waiter, released: CommandOutcome): Promise<Step> {
    const { status, list, tickets, isDraining } = this.#options;
    const granted = released.kind === "refused" ? undefined : released.next;
    if (granted !== undefined) return await this.#conclude(waiter, granted);
    const isOver = waiter.phase === "overdue";
    if (waiter.phase !== "left") waiter.phase = "waiting";
    if (released.kind === "applied") {
      const { lease } = released.decision;
      status.onRecord(lease.key, lease, this.#nowMs(), tickets()?.own ?? "");
      return "ask again";
    }
    // An attempt whose reply was lost may have served the waiter before somebody else wrote.
    const perhaps = asUnsettled("the release was refused");
    waiter.remember(perhaps);
    if (waiter.phase === "left" && (await list.releaseUnclaimed(waiter, perhaps))) return "ask again";
    // Nothing was released. A waiter whose time ran out meanwhile was not answered yet.
    if (isOver) list.timeOut(waiter);
    else if (waiter.phase === "waiting" && isDraining()) list.end(waiter, "draining");
    return "wait";
  }

  #nowMs(): number {
    return this.#options.env.monotonicMs();
  }
}
