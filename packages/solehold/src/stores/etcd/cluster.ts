/**
 * Calls to the cluster. A request goes to one member, once. If that member is down, has no leader or is silent, another
 * is asked within the same time, but only where that is safe: a read, or a write of which it is certain that it was not
 * done. A write that may have been done ends as unknown, and finding out is the caller's business.
 *
 * One member is used until it fails. Then all others are tried at once, and the first that answers is used: a member
 * that is down, stopped, or cut off from its cluster costs one timeout, not one for every call.
 */
import { delay, type Env, jittered } from "../../env/index.ts";
import { type FailedOutcome, withDeadline } from "../../store/index.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import { closedError, type EtcdError, errorFrom, lossError, mostTelling, silence } from "./failures.ts";
import type { Member, OpenStream } from "./grpc.ts";
import { ClusterIdentity, type Sighting } from "./identity.ts";
import {
  AUTHENTICATE,
  type Procedure,
  RANGE,
  type RangeRequest,
  type ReplyWithHeader,
  STATUS,
} from "./messages.ts";
import type { EtcdSettings } from "./options.ts";

export interface ClusterOptions {
  readonly env: Env;
  readonly connect: (address: string) => Member;
  readonly settings: EtcdSettings;
  /** What a member is asked to read before it is used. */
  readonly probe: RangeRequest;
}

const RETRY_PAUSE_MS = 20;

export class Cluster {
  readonly #options: ClusterOptions;
  readonly #addresses: string;
  readonly #identity = new ClusterIdentity();
  readonly #connection: Reconnecting<Member>;
  readonly #members = new Set<Member>();
  /** Those that failed last. They are tried again when no other is left. */
  readonly #suspects = new Set<string>();
  #lastFailure: EtcdError | null = null;
  #closed = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#addresses = options.settings.members.join(",");
    const open = (): Promise<Member> => this.#open();
    const close = (member: Member): void => this.#drop(member);
    this.#connection = new Reconnecting({ env: options.env, name: "etcd", open, close });
  }

  /** How often this client noticed that data was lost. */
  get losses(): number {
    return this.#identity.seen.losses;
  }

  /** One attempt. */
  async connect(): Promise<void> {
    await this.#connection.get();
  }

  /** `outcome` is what is true of the request when no reply comes, or one that `decode` throws at. */
  call<Request extends object, Reply extends ReplyWithHeader, Value>(
    procedure: Procedure<Request, Reply>,
    request: Request,
    outcome: FailedOutcome,
    decode: (reply: Reply, revision: bigint) => Value,
  ): Promise<Value> {
    return this.repeated(async (leftMs) => {
      const { env, settings } = this.#options;
      const startMs = env.monotonicMs();
      const member = await this.#member(leftMs);
      this.#assertNothingLost("not-applied");
      const asked = this.#identity.seen;
      const limitMs = Math.min(startMs + leftMs - env.monotonicMs(), settings.memberTimeoutMs);
      try {
        const reply = await this.#inTime(limitMs, member.call(procedure, request), member.address, outcome);
        const sighting = sightingIn(reply);
        this.#identity.learn(sighting, asked);
        this.#assertNothingLost(outcome);
        return decode(reply, sighting.revision);
      } catch (cause) {
        throw this.#failed(cause, member, outcome);
      }
    });
  }

  /** Resolves with the first message. The request is made when it is known that a member will get it. */
  async stream<Request extends object, Reply>(
    procedure: Procedure<Request, Reply>,
    request: () => Request,
    onMessage: (message: Reply) => void,
  ): Promise<OpenStream> {
    const { memberTimeoutMs } = this.#options.settings;
    const member = await this.#member(memberTimeoutMs);
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const { ended, cancel } = member.stream(procedure, request(), (message: Reply) => {
      onMessage(message);
      begin();
    });
    const failed = ended.then((cause) => {
      throw this.#failed(cause, member, "not-applied");
    });
    try {
      await this.#inTime(memberTimeoutMs, Promise.race([begun, failed]), member.address, "not-applied");
    } catch (cause) {
      cancel();
      throw this.#failed(cause, member, "not-applied");
    }
    return { ended, cancel };
  }

  /** Until it succeeds, fails for good, or the time is over. */
  async repeated<Value>(attempt: (leftMs: number) => Promise<Value>): Promise<Value> {
    const { env, settings } = this.#options;
    const deadlineMs = env.monotonicMs() + settings.timeoutMs;
    for (;;) {
      if (this.#closed) throw closedError();
      try {
        return await attempt(deadlineMs - env.monotonicMs());
      } catch (cause) {
        const error = errorFrom(cause, this.#addresses, "not-applied");
        const leftMs = deadlineMs - env.monotonicMs() - 2 * RETRY_PAUSE_MS;
        if (error.remedy === "none" || error.outcome === "unknown" || leftMs <= 0) throw error;
        await delay(env, jittered(env, RETRY_PAUSE_MS, 0.5));
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const member of this.#members) member.abort();
    await this.#connection.close();
  }

  async #member(leftMs: number): Promise<Member> {
    const noMember = (): EtcdError => this.#lastFailure ?? silence(this.#addresses, leftMs, "not-applied");
    const connected = () => withDeadline(this.#options.env, leftMs, this.#connection.get(), noMember);
    const member = await connected();
    if (member.isReady) return member;
    // Its connection was lost while nothing was under way.
    await this.#leave(member);
    return await connected();
  }

  async #open(): Promise<Member> {
    if (this.#closed) throw closedError();
    const asked = this.#identity.seen;
    const candidates = this.#candidates().map(this.#options.connect);
    for (const member of candidates) this.#members.add(member);
    let chosen: Member | null = null;
    try {
      const { member, ...sighting } = await Promise.any(candidates.map((each) => this.#greet(each)));
      this.#identity.learn(sighting, asked);
      this.#suspects.delete(member.address);
      this.#lastFailure = null;
      chosen = member;
      return member;
    } catch (error) {
      for (const { address } of candidates) this.#suspects.add(address);
      this.#lastFailure = this.#closed ? closedError() : mostTelling(error);
      throw this.#lastFailure;
    } finally {
      for (const member of candidates) if (member !== chosen) this.#drop(member);
    }
  }

  #candidates(): readonly string[] {
    const { members } = this.#options.settings;
    const trusted = members.filter((address) => !this.#suspects.has(address));
    if (trusted.length > 0) return trusted;
    this.#suspects.clear();
    return members;
  }

  /** Logs in, and reads through the leader: afterwards the member's log is as long as any that was seen before. */
  async #greet(member: Member): Promise<Sighting & { readonly member: Member }> {
    const { settings, probe } = this.#options;
    const greeting = async () => {
      member.token = await this.#logIn(member);
      const sighting = sightingIn(await member.call(RANGE, probe));
      const { raftIndex } = await member.call(STATUS, {});
      return { member, ...sighting, raftIndex: BigInt(raftIndex) };
    };
    try {
      return await this.#inTime(settings.memberTimeoutMs, greeting(), member.address, "not-applied");
    } catch (cause) {
      throw errorFrom(cause, member.address, "not-applied");
    }
  }

  async #logIn(member: Member): Promise<string | null> {
    const { user } = this.#options.settings;
    if (user === null) return null;
    try {
      return (await member.call(AUTHENTICATE, user)).token;
    } catch (error) {
      // A cluster that asks nobody for a password needs no token.
      if (String(error).includes("authentication is not enabled")) return null;
      throw error;
    }
  }

  #inTime<Value>(
    ms: number,
    answer: Promise<Value>,
    address: string,
    outcome: FailedOutcome,
  ): Promise<Value> {
    return withDeadline(this.#options.env, Math.max(1, ms), answer, () => silence(address, ms, outcome));
  }

  #failed(cause: unknown, member: Member, outcome: FailedOutcome): EtcdError {
    if (this.#closed && outcome === "not-applied") return closedError();
    const error = errorFrom(cause, member.address, outcome);
    if (error.remedy === "another-member") void this.#leave(member);
    // What is under way with the old login may still be answered.
    if (error.remedy === "new-login") void this.#connection.lose(member);
    return error;
  }

  async #leave(member: Member): Promise<void> {
    this.#suspects.add(member.address);
    member.abort();
    await this.#connection.lose(member);
  }

  #drop(member: Member): void {
    this.#members.delete(member);
    member.close();
  }

  #assertNothingLost(outcome: FailedOutcome): void {
    const loss = this.#identity.takeLoss();
    if (loss !== null) throw lossError(this.#addresses, loss, outcome);
  }
}

function sightingIn({ header }: ReplyWithHeader): Sighting {
  if (header === null) throw new Error("not a message of etcd: it has no header");
  return { clusterId: header.clusterId, revision: BigInt(header.revision), raftIndex: null };
}
