/**
 * The leases of one agent's session: what each tool does. A lease is renewed while the session lives, and `end` releases
 * all of them. A lease that was lost is reported with the next answer, whatever was asked.
 *
 * It cannot take a lease from another holder, nor see or take one outside its prefix.
 */
import { type Lease, LeaseHeldError, LeaseLostError, type Leases } from "solehold";
import { durationMs, given, RandomIds, realEnv } from "solehold/internal";
import { shortDuration } from "../format/duration.ts";
import {
  type Answer,
  deniedAnswer,
  heldAnswer,
  lostText,
  quoted,
  renewalAnswer,
  stateOf,
  viewAnswer,
  viewFields,
} from "./answer.ts";

export interface SessionOptions {
  readonly leases: Leases;
  /** Only names that begin with it; "" for all. */
  readonly prefix: string;
  /** Null for the default of the policy. */
  readonly ttlMs: number | null;
}

const LONGEST_LISTING = 100;
const LONGEST_CLIENT_NAME = 40;
const ID_LENGTH = 8;
/** Clients give up on a call after 60 s unless they were configured otherwise. */
const DEFAULT_WAIT_MS = 50_000;
const DEFAULT_HANDOFF_MS = 60_000;

export class AgentSession {
  readonly #options: SessionOptions;
  readonly #id = new RandomIds(realEnv, "hex").next().slice(0, ID_LENGTH);
  readonly #held = new Map<string, Lease>();
  /** Names that are being acquired. */
  readonly #asking = new Map<string, Promise<Answer>>();
  readonly #ending = new AbortController();
  #clientName = "agent";

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** What others see: the client's name, and an id that no other session has. */
  get holder(): string {
    return `${this.#clientName}-${this.#id}`;
  }

  /** As the client introduced itself. */
  introduce(clientName: string): void {
    const plain = clientName.replaceAll(/[^\w.]+/g, "-").replaceAll(/^-+|-+$/g, "");
    this.#clientName = plain.slice(0, LONGEST_CLIENT_NAME) || "agent";
  }

  /** One request at a time for each name: a session would wait for itself. */
  async acquire(
    name: string,
    note: string | undefined,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Answer> {
    this.#checkName("name", name);
    const own = this.#own(name);
    if (own !== null) return heldAnswer(own, "is already yours");
    if (this.#asking.has(name)) throw new RangeError(`this session is already asking for ${quoted(name)}`);
    const asking = this.#acquire(name, note, waitMs, AbortSignal.any([signal, this.#ending.signal]));
    this.#asking.set(name, asking);
    try {
      return await asking;
    } finally {
      this.#asking.delete(name);
    }
  }

  /** In turn, first come, first served. */
  async wait(
    name: string,
    within: string | undefined,
    note: string | undefined,
    signal: AbortSignal,
  ): Promise<Answer> {
    const waitMs = within === undefined ? DEFAULT_WAIT_MS : durationMs("within", within, 1);
    return await this.acquire(name, note, waitMs, signal);
  }

  async renew(name: string): Promise<Answer> {
    const lease = this.#own(name);
    if (lease === null) return await this.#notHeld(name);
    try {
      const renewed = await lease.renew();
      return renewalAnswer(
        lease,
        renewed ? "renewed" : "not renewed",
        await this.#options.leases.inspect(name),
      );
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      return await this.#notHeld(name);
    }
  }

  async release(name: string): Promise<Answer> {
    const lease = this.#own(name);
    if (lease === null) return await this.#notHeld(name);
    this.#held.delete(name);
    const { released, reason } = await lease.release();
    return ended(
      lease,
      released,
      released ? "is released" : `could not be released (${reason}); it ends by its ttl`,
    );
  }

  async handOff(name: string, to: string, within: string | undefined): Promise<Answer> {
    const withinMs = within === undefined ? DEFAULT_HANDOFF_MS : durationMs("within", within, 1);
    const lease = this.#own(name);
    if (lease === null) return await this.#notHeld(name);
    const { released, reason } = await lease.handOff(to, { withinMs });
    this.#held.delete(name);
    const reserved = `is reserved for ${quoted(to)} for ${shortDuration(withinMs)}, and no longer yours`;
    return ended(
      lease,
      released,
      released ? reserved : `could not be handed off (${reason}) and is no longer yours`,
    );
  }

  async who(name: string): Promise<Answer> {
    this.#checkName("name", name);
    const answer = viewAnswer(name, await this.#options.leases.inspect(name));
    const lease = this.#own(name);
    return lease === null ? answer : { ...answer, text: `${answer.text} That is you.` };
  }

  async list(prefix = this.#options.prefix): Promise<Answer> {
    this.#checkName("prefix", prefix);
    const lines: string[] = [];
    const leases: Answer["fields"][] = [];
    let more = "";
    for await (const view of this.#options.leases.list({ prefix, state: "held" })) {
      if (!view.live) continue;
      if (leases.length === LONGEST_LISTING) {
        more = `There are more than ${LONGEST_LISTING}: give a longer prefix.`;
        break;
      }
      lines.push(stateOf(view));
      leases.push(viewFields(view.key.name, view));
    }
    const text =
      lines.length === 0 ? `Nothing is held under ${quoted(prefix)}.` : [...lines, more].join("\n").trim();
    return { outcome: "done", text, fields: { leases, complete: more === "" } };
  }

  /** Which leases were lost since the last call. */
  lost(): readonly string[] {
    const over = [...this.#held.values()].filter(({ state }) => state === "lost");
    for (const { name } of over) this.#held.delete(name);
    return over.map(lostText);
  }

  /** Ends waits and releases everything. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.allSettled(this.#asking.values());
    await this.#options.leases.drain();
  }

  async #acquire(
    name: string,
    note: string | undefined,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Answer> {
    const { leases, ttlMs } = this.#options;
    const options = given({ note, ttl: ttlMs });
    try {
      const lease = await leases.acquire(name, { ...options, holder: this.holder, wait: waitMs, signal });
      this.#held.set(name, lease);
      return heldAnswer(lease, "is yours");
    } catch (error) {
      if (!(error instanceof LeaseHeldError)) throw error;
      return deniedAnswer(error, await leases.inspect(name));
    }
  }

  #own(name: string): Lease | null {
    this.#checkName("name", name);
    const lease = this.#held.get(name);
    return lease?.isHeld() === true ? lease : null;
  }

  async #notHeld(name: string): Promise<Answer> {
    const answer = viewAnswer(name, await this.#options.leases.inspect(name));
    return {
      ...answer,
      outcome: "failed",
      text: `This session does not hold ${quoted(name)}. ${answer.text}`,
    };
  }

  #checkName(field: string, name: string): void {
    const { prefix } = this.#options;
    if (name.startsWith(prefix)) return;
    throw new RangeError(`${field} must begin with ${quoted(prefix)} in this session, got ${quoted(name)}`);
  }
}

function ended({ name, fence }: Lease, done: boolean, what: string): Answer {
  const fields = { name, held: false, fence: fence.toString() };
  return { outcome: done ? "done" : "failed", text: `${quoted(name)} (fence ${fence}) ${what}.`, fields };
}
