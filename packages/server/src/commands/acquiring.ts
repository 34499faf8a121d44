/**
 * What every decision sets in motion: an acquire takes its place in line, an ended lease wakes those who
 * wait, watchers and meters hear of it.
 */
import type { Env, LeaseKey, LeaseOp, LeaseRecord } from "solehold";
import type { CallContext, LeaseService, ServiceReply } from "solehold/internal";
import { clientGone, ProblemError } from "../protocol/problem.ts";
import type { AcquireInput } from "../protocol/schemas/leases.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type GrantedTo, giveBack } from "../waiting/give-back.ts";
import type { WaitQueue } from "../waiting/wait-queue.ts";
import type { WatchHub } from "../watch/watch-hub.ts";
import type { Call } from "./call.ts";
import { acquireRequest, type CommandRunner, contextOf, type ReleaseAsked } from "./command-handler.ts";

export interface AcquiringOptions {
  readonly env: Env;
  readonly service: LeaseService;
  readonly queue: WaitQueue;
  readonly hub: WatchHub;
  readonly metrics: Metrics;
}

/** Renewals remembered to tell how late the next one comes: a sample, bounded. */
const REMEMBERED_RENEWALS = 65_536;

export class Acquiring implements CommandRunner {
  readonly #options: AcquiringOptions;
  readonly #renewedAtMs = new Map<string, number>();

  constructor(options: AcquiringOptions) {
    this.#options = options;
  }

  acquire({ request, context, options }: GrantedTo): Promise<ServiceReply> {
    const { env, queue, metrics } = this.#options;
    const reply = queue.acquire(request, context, options);
    if (options.waitMs === 0) return reply;
    const startMs = env.monotonicMs();
    return reply.then((waited) => {
      metrics.waited((env.monotonicMs() - startMs) / 1_000, waited.outcome.kind);
      return waited;
    });
  }

  asked(key: LeaseKey, input: AcquireInput, call: Call): GrantedTo {
    const { waitMs = 0, token = newToken(this.#options.env), idempotencyKey } = input;
    const repeatable =
      idempotencyKey !== undefined ? "by key" : input.token !== undefined ? "by token" : "no";
    return {
      request: acquireRequest(key, input, token),
      context: contextOf(call),
      options: { waitMs, connection: call.connection, repeatable },
    };
  }

  release(request: ReleaseAsked, context: CallContext): Promise<ServiceReply> {
    return this.#options.queue.release(request, context);
  }

  /** The connection went between the grant and its answer: nobody would ever release it. */
  async abandoned(asked: GrantedTo, reply: ServiceReply): Promise<ServiceReply> {
    const released = await giveBack(this.#options.service, asked, reply);
    if (released === null) return reply;
    this.decided("release", asked.request.key, released);
    throw new ProblemError(clientGone());
  }

  decided(op: LeaseOp, key: LeaseKey, { outcome, superseded }: ServiceReply): void {
    // What never stood in the store is no news.
    if (outcome.kind !== "applied" || superseded === true) return;
    const { queue, hub, metrics } = this.#options;
    const { lease, resumeFromLedgerRequired, replayed } = outcome.decision;
    queue.notice(key, lease);
    if (op !== "use") hub.decided(lease);
    if (op === "acquire" && resumeFromLedgerRequired && !replayed) metrics.takeover();
    this.#measureRenewal(op, lease);
  }

  /** The first renewal follows the grant, which its record names; only later ones have to be remembered. */
  #measureRenewal(op: LeaseOp, lease: LeaseRecord): void {
    if (lease.renewals === 0 || (op !== "acquire" && op !== "renew")) return;
    const id = `${lease.key.tenant}/${lease.key.name}@${lease.generation}`;
    const before = lease.renewals === 1 ? lease.grantedAtMs : this.#renewedAtMs.get(id);
    if (op === "renew" && before !== undefined) {
      this.#options.metrics.renewed((lease.renewedAtMs - before) / lease.ttlMs);
    }
    this.#renewedAtMs.delete(id);
    this.#renewedAtMs.set(id, lease.renewedAtMs);
    if (this.#renewedAtMs.size <= REMEMBERED_RENEWALS) return;
    const [oldest] = this.#renewedAtMs.keys();
    if (oldest !== undefined) this.#renewedAtMs.delete(oldest);
  }
}

function newToken(env: Env): string {
  return Buffer.from(env.randomBytes(16)).toString("base64url");
}
