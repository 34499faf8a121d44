/**
 * Calls to the cluster. A request goes to one member, once. If that member is down, has no leader or is silent,
 * another is asked within the same time, but only where that is safe: a read, or a write of which it is certain
 * that it was not done. A write that may have been done ends as unknown, and finding out is the caller's business.
 */
import { delay, type Env, jittered } from "../../env/index.ts";
import type { FailedOutcome } from "../../store/index.ts";
import { closedError, type EtcdError, errorFrom, silence } from "./failures.ts";
import type { CallFields, MemberConnection, StreamListener } from "./grpc.ts";
import { inTime } from "./in-time.ts";
import { Lineage } from "./lineage.ts";
import type { Login } from "./login.ts";
import type { Members } from "./members.ts";
import type { ResponseHeader } from "./messages.ts";

/** A procedure of etcd whose reply says at which revision it was given. */
export interface Procedure<Reply> {
  readonly path: string;
  readonly decode: (bytes: Uint8Array) => Reply;
}

export const RANGE_PATH = "/etcdserverpb.KV/Range";
export const TRANSACTION_PATH = "/etcdserverpb.KV/Txn";

export interface CallsOptions {
  readonly env: Env;
  readonly members: Members;
  readonly login: Login;
  readonly timeoutMs: number;
  readonly memberTimeoutMs: number;
}

/** A member that is ready to be asked, and what a question carries. */
interface Way {
  readonly member: MemberConnection;
  readonly fields: CallFields;
}

export interface OpenStream {
  readonly address: string;
  end(): void;
  /** What went wrong, after the consequences were drawn: a member that is of no use is left, for others too. */
  failed(cause: unknown): EtcdError;
}

const FIRST_PAUSE_MS = 10;
const LAST_PAUSE_MS = 200;

export class Calls {
  readonly #options: CallsOptions;
  readonly #lineage = new Lineage();
  #closed = false;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  /** `outcome` is what is true of the request when no reply comes. */
  call<Reply extends { readonly header: ResponseHeader }>(
    procedure: Procedure<Reply>,
    message: Buffer,
    outcome: FailedOutcome,
  ): Promise<Reply> {
    return this.repeated((leftMs) => this.#ask(procedure, message, outcome, leftMs));
  }

  /** A stream on some member. It is open-ended: the listener must see to it that something comes in time. */
  async stream(path: string, first: Uint8Array, listener: StreamListener): Promise<OpenStream> {
    const way = await this.#way(this.#options.memberTimeoutMs);
    const end = way.member.stream(path, first, way.fields, listener);
    const { address } = way.member;
    return { address, end, failed: (cause) => this.#failed(cause, way, "not-applied") };
  }

  /** Until it succeeds, fails for good, or the time is over. */
  async repeated<Value>(attempt: (leftMs: number) => Promise<Value>): Promise<Value> {
    const { env, members, timeoutMs } = this.#options;
    const deadlineMs = env.monotonicMs() + timeoutMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
      if (this.#closed) throw closedError();
      this.#lineage.assertIntact(members.addresses, "not-applied");
      try {
        return await attempt(deadlineMs - env.monotonicMs());
      } catch (cause) {
        const error = errorFrom(cause, members.addresses, "not-applied");
        const leftMs = deadlineMs - env.monotonicMs() - 2 * pauseMs;
        if (error.remedy === "none" || error.outcome === "unknown" || leftMs <= 0) throw error;
        await delay(env, jittered(env, pauseMs, 0.5));
      }
    }
  }

  close(): void {
    this.#closed = true;
    this.#options.members.close();
  }

  async #ask<Reply extends { readonly header: ResponseHeader }>(
    { path, decode }: Procedure<Reply>,
    message: Buffer,
    outcome: FailedOutcome,
    leftMs: number,
  ): Promise<Reply> {
    const { env, members, memberTimeoutMs } = this.#options;
    const deadlineMs = env.monotonicMs() + leftMs;
    const way = this.#wayNow() ?? (await this.#way(Math.min(leftMs, memberTimeoutMs)));
    const askedAt = this.#lineage.revision;
    const patienceMs = Math.max(1, Math.min(deadlineMs - env.monotonicMs(), memberTimeoutMs));
    let reply: Reply;
    try {
      const answer = way.member.request(path, message, way.fields);
      const expired = (): EtcdError => silence(way.member.address, patienceMs, outcome);
      reply = decode(await inTime(env, answer, patienceMs, expired));
    } catch (cause) {
      throw this.#failed(cause, way, outcome);
    }
    this.#lineage.learn(reply.header, askedAt);
    this.#lineage.assertIntact(members.addresses, outcome);
    return reply;
  }

  /** Null where something has to be waited for first. */
  #wayNow(): Way | null {
    const { members, login } = this.#options;
    const member = members.current;
    const fields = login.current;
    return member === null || fields === null ? null : { member, fields };
  }

  async #way(patienceMs: number): Promise<Way> {
    const { env, members, login } = this.#options;
    const expired = (): EtcdError => silence(members.addresses, patienceMs, "not-applied");
    const member = members.current ?? (await inTime(env, members.connected(), patienceMs, expired));
    if (login.current !== null) return { member, fields: login.current };
    try {
      return { member, fields: await inTime(env, login.logIn(member), patienceMs, expired) };
    } catch (cause) {
      throw this.#failed(cause, { member, fields: null }, "not-applied");
    }
  }

  #failed(
    cause: unknown,
    { member, fields }: { readonly member: MemberConnection; readonly fields: CallFields | null },
    outcome: FailedOutcome,
  ): EtcdError {
    const { members, login } = this.#options;
    if (this.#closed && outcome === "not-applied") return closedError();
    const error = errorFrom(cause, member.address, outcome);
    if (error.remedy === "another-member") members.leave(member);
    if (error.remedy === "new-token" && fields !== null) login.forget(fields);
    return error;
  }
}
