/**
 * Which member of the cluster is spoken to. All are tried at once and the first that answers and knows a leader
 * is used until it fails; then it is left, and the others are tried before it. So one member that is down,
 * stopped, or cut off from its cluster costs one timeout, not one for every call.
 */
import type { Env } from "../../env/index.ts";
import { closedError, EtcdError, errorFrom, isLasting, silence } from "./failures.ts";
import { MemberConnection } from "./grpc.ts";
import { inTime } from "./in-time.ts";
import { decodeStatus } from "./messages.ts";
import type { EtcdTls } from "./options.ts";

const STATUS_PATH = "/etcdserverpb.Maintenance/Status";
const NO_MESSAGE = Buffer.alloc(0);
const NO_FIELDS = {};

export interface MembersOptions {
  readonly env: Env;
  readonly tls: EtcdTls | null;
  readonly addresses: readonly string[];
  readonly memberTimeoutMs: number;
}

export class Members {
  /** All of them, for messages. */
  readonly addresses: string;
  readonly #options: MembersOptions;
  /** Those that failed last. They are tried again when no other is left. */
  readonly #suspects = new Set<string>();
  readonly #trying = new Set<MemberConnection>();
  #current: MemberConnection | null = null;
  #connecting: Promise<MemberConnection> | null = null;
  #closed = false;

  constructor(options: MembersOptions) {
    this.#options = options;
    this.addresses = options.addresses.join(",");
  }

  /** The member of the moment; null when there is none, or its connection was lost. */
  get current(): MemberConnection | null {
    return this.#current?.isReady ? this.#current : null;
  }

  /** A member that answers. Rejects when none of those that were tried does. */
  async connected(): Promise<MemberConnection> {
    if (this.#closed) throw closedError();
    if (this.current !== null) return this.current;
    if (this.#current !== null) this.leave(this.#current);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  /** It failed. What is under way there ends. */
  leave(member: MemberConnection): void {
    this.#suspects.add(member.address);
    if (this.#current === member) this.#current = null;
    member.close();
  }

  close(): void {
    this.#closed = true;
    this.#current?.close();
    this.#current = null;
    for (const member of this.#trying) member.close();
  }

  async #connect(): Promise<MemberConnection> {
    const candidates = this.#candidates();
    const attempts = candidates.map((address) => this.#try(address));
    try {
      return await Promise.any(attempts);
    } catch (error) {
      for (const address of candidates) this.#suspects.add(address);
      throw this.#closed ? closedError() : mostTelling(error);
    }
  }

  /** Not all clients begin with the same one. */
  #candidates(): readonly string[] {
    const { addresses, env } = this.#options;
    const trusted = addresses.filter((address) => !this.#suspects.has(address));
    if (trusted.length === 0) this.#suspects.clear();
    const all = trusted.length === 0 ? addresses : trusted;
    const first = Math.floor(env.random() * all.length);
    return [...all.slice(first), ...all.slice(0, first)];
  }

  async #try(address: string): Promise<MemberConnection> {
    const { env, tls } = this.#options;
    const member = new MemberConnection({ env, address, tls });
    this.#trying.add(member);
    try {
      await this.#assertUseful(member);
    } catch (error) {
      member.close();
      throw errorFrom(error, address, "not-applied");
    } finally {
      this.#trying.delete(member);
    }
    this.#current = member;
    this.#suspects.delete(address);
    for (const other of this.#trying) other.close();
    return member;
  }

  async #assertUseful(member: MemberConnection): Promise<void> {
    const { env, memberTimeoutMs } = this.#options;
    const answer = member.request(STATUS_PATH, NO_MESSAGE, NO_FIELDS);
    const expired = (): EtcdError => silence(member.address, memberTimeoutMs, "not-applied");
    const { leader } = decodeStatus(await inTime(env, answer, memberTimeoutMs, expired));
    if (leader === 0n) throw new Error("etcdserver: no leader");
    // Another may have been quicker in the same turn.
    if (this.#closed || this.#current !== null) throw closedError();
  }
}

/** What a person can correct is told before what may pass by itself. */
function mostTelling(error: unknown): EtcdError {
  const failures: unknown[] = error instanceof AggregateError ? error.errors : [error];
  const known = failures.filter((each) => each instanceof EtcdError);
  const [first] = known;
  if (first === undefined) throw error;
  return known.find(isLasting) ?? known.find(({ kind }) => kind !== "timeout") ?? first;
}
