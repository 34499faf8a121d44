/**
 * Calls to the cluster. A request goes to one member, once. If that member is down, has no leader or is silent, another
 * is asked within the same time, but only where that is safe: a read, or a write of which it is certain that it was not
 * done. A write that may have been done ends as unknown, and finding out is the caller's business.
 *
 * One member is used until it fails. Then all are tried at once, and the first that can read through a leader is used: a
 * member that is down, stopped, or cut off from its cluster costs one timeout, not one for every call.
 */
import { delay, type Env, jittered } from "../../env/index.ts";
import { type FailedOutcome, type StoreError, withDeadline } from "../../store/index.ts";
import { closedError, lossError, silenceError } from "../support/failures.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import { errorFrom, mayPass, mostTelling } from "./failures.ts";
import type { Member } from "./grpc.ts";
import { ClusterIdentity, type Sighting } from "./identity.ts";
import type { KeyRange, Procedures, WatchRequest, WatchResponse, WithHeader } from "./messages.ts";
import type { EtcdSettings } from "./options.ts";

export interface ClusterOptions {
  readonly env: Env;
  readonly settings: EtcdSettings;
  readonly connect: (address: string) => Member;
  /** Where all records are. A member has to read there before it is used. */
  readonly range: KeyRange;
}

const RETRY_PAUSE_MS = 20;

export class Cluster {
  readonly identity = new ClusterIdentity();
  isClosed = false;
  readonly #options: ClusterOptions;
  readonly #addresses: string;
  readonly #connection: Reconnecting<Member>;

  constructor(options: ClusterOptions) {
    const { env, settings } = options;
    this.#options = options;
    this.#addresses = settings.members.join(",");
    const close = (member: Member): void => member.close();
    this.#connection = new Reconnecting({ env, name: "etcd", open: () => this.#open(), close });
  }

  /** One attempt. */
  async connect(): Promise<void> {
    await this.#connection.get();
  }

  /** `outcome` is what is true of the request when no reply comes, or one that `decode` throws at. */
  call<Name extends "KV/Range" | "KV/Txn", Value>(
    name: Name,
    request: Procedures[Name][0],
    outcome: FailedOutcome,
    decode: (reply: Procedures[Name][1], revision: bigint) => Value,
  ): Promise<Value> {
    return this.repeated(async (deadlineMs) => {
      const member = await this.#member(deadlineMs);
      this.#assertNothingLost("not-applied");
      const learn = this.identity.expectReply();
      try {
        const reply = await this.#inTime(member, member.call(name, request), outcome, deadlineMs);
        const sighting = sightingIn(reply);
        learn(sighting);
        this.#assertNothingLost(outcome);
        return decode(reply, sighting.revision);
      } catch (cause) {
        throw this.#failed(cause, member, outcome);
      }
    });
  }

  /** A watch on some member, until it fails or is aborted. `request` is asked for when a member is there. */
  async *watch(request: () => WatchRequest, signal: AbortSignal): AsyncGenerator<WatchResponse, never> {
    const { env, settings } = this.#options;
    const member = await this.#member(env.monotonicMs() + settings.memberTimeoutMs);
    if (signal.aborted) throw closedError("etcd");
    const { responses, cancel } = member.watch(request());
    signal.addEventListener("abort", cancel);
    try {
      let next = await this.#inTime(member, responses.next(), "not-applied");
      for (; next.done !== true; next = await responses.next()) yield next.value;
      throw new Error("the server ended the stream");
    } catch (cause) {
      throw this.#failed(cause, member, "not-applied");
    } finally {
      signal.removeEventListener("abort", cancel);
      cancel();
    }
  }

  /** Until it succeeds, fails for good, or the time is over. */
  async repeated<Value>(attempt: (deadlineMs: number) => Promise<Value>): Promise<Value> {
    const { env, settings } = this.#options;
    const deadlineMs = env.monotonicMs() + settings.timeoutMs;
    const failures: StoreError[] = [];
    for (;;) {
      try {
        return await attempt(deadlineMs);
      } catch (cause) {
        const error = errorFrom(cause, this.#addresses, "not-applied");
        if (!mayPass(error)) throw error;
        failures.unshift(error);
        if (env.monotonicMs() + 2 * RETRY_PAUSE_MS >= deadlineMs) throw mostTelling(failures);
        await delay(env, jittered(env, RETRY_PAUSE_MS, 0.5));
      }
    }
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.#connection.close();
  }

  async #member(deadlineMs: number): Promise<Member> {
    const { env } = this.#options;
    const leftMs = Math.max(1, deadlineMs - env.monotonicMs());
    const noMember = (): StoreError => silenceError(`etcd at ${this.#addresses}`, leftMs, "not-applied");
    const member = await this.#connection.getWithin(leftMs, noMember);
    if (member.isReady) return member;
    // Its connection was lost while nothing was under way.
    await this.#connection.lose(member);
    return await this.#connection.getWithin(leftMs, noMember);
  }

  async #open(): Promise<Member> {
    const learn = this.identity.expectReply();
    const candidates = this.#options.settings.members.map(this.#options.connect);
    let chosen: Member | null = null;
    try {
      const { member, ...sighting } = await Promise.any(candidates.map((each) => this.#greet(each)));
      learn(sighting);
      chosen = member;
      return member;
    } catch (error) {
      throw mostTelling((error as AggregateError).errors);
    } finally {
      for (const member of candidates) if (member !== chosen) member.close();
    }
  }

  /** Logs in, and reads through the leader: afterwards the member's log is as long as any that was seen before. */
  async #greet(member: Member): Promise<Sighting & { readonly member: Member }> {
    const greeting = async () => {
      member.token = await this.#logIn(member);
      const sighting = sightingIn(await member.call("KV/Range", { ...this.#options.range, limit: 1 }));
      const { raftIndex } = await member.call("Maintenance/Status", {});
      return { ...sighting, raftIndex: BigInt(raftIndex), member };
    };
    try {
      return await this.#inTime(member, greeting(), "not-applied");
    } catch (cause) {
      throw errorFrom(cause, member.address, "not-applied");
    }
  }

  async #logIn(member: Member): Promise<string | null> {
    const { user } = this.#options.settings;
    if (user === null) return null;
    try {
      return (await member.call("Auth/Authenticate", user)).token;
    } catch (error) {
      // A cluster that asks nobody for a password needs no token.
      if (String(error).includes("authentication is not enabled")) return null;
      throw error;
    }
  }

  #inTime<Value>(
    { address }: Member,
    answer: Promise<Value>,
    outcome: FailedOutcome,
    deadlineMs = Number.POSITIVE_INFINITY,
  ): Promise<Value> {
    const { env, settings } = this.#options;
    const limitMs = Math.max(1, Math.min(deadlineMs - env.monotonicMs(), settings.memberTimeoutMs));
    return withDeadline(env, limitMs, answer, () => silenceError(`etcd at ${address}`, limitMs, outcome));
  }

  /** The member is left, and what is under way there ends, unless it only refused what no member would do. */
  #failed(cause: unknown, member: Member, outcome: FailedOutcome): StoreError {
    if (this.isClosed && outcome === "not-applied") return closedError("etcd");
    const error = errorFrom(cause, member.address, outcome);
    const isLeft = ["unreachable", "timeout", "config", "data-loss"].includes(error.kind);
    if (isLeft) void this.#connection.lose(member);
    return error;
  }

  /** Throws once for each loss: afterwards the client works on what is there. */
  #assertNothingLost(outcome: FailedOutcome): void {
    const loss = this.identity.takeLoss();
    if (loss !== null) throw lossError(`etcd at ${this.#addresses}`, loss, outcome);
  }
}

function sightingIn({ header }: WithHeader): Sighting {
  if (header === null) throw new Error("not a message of etcd: it has no header");
  return { clusterId: header.clusterId, revision: BigInt(header.revision), raftIndex: 0n };
}
