/**
 * Where the explored world asks the shipped code: `decide`, the validity of a belief, the end of a record,
 * the guard. All of them are pure, so an answer is asked for once and kept.
 */

import { FencedResource } from "solehold/guards";
import {
  type DriftBound,
  endOfRecord,
  isStillValid,
  type LeaseCommand,
  type LeaseRecord,
  NO_TOKEN_HASH,
  plainRecord,
  StaleFenceError,
  type StoreInstant,
  validityFrom,
} from "solehold/internal";
import { recordKey } from "./catalogue.ts";
import type { ExploreRules, ExploreWorld } from "./rules.ts";
import { type KeyState, MARKS, type Operation, type SmallRecord } from "./state.ts";

export type Knowledge = "exact" | "doubtful";

export interface Request {
  readonly op: Operation;
  readonly client: number;
  /** Of the attempt; the token and the nonce are made of it. */
  readonly mark: number;
  /** The mark of the token that the caller has. */
  readonly proof: number | null;
  readonly successor: number;
  readonly knowledge: Knowledge;
}

export interface Answer {
  readonly next: SmallRecord | null;
  readonly generation: number;
  readonly mark: number;
  readonly validFor: number;
}

/** The store's present, on its own clock. */
const NOW_MS = 1_000;
const KEY = { tenant: "default", name: "key" };
/** How long a reservation and a break last. */
const PERIOD = 2;
const STRANGER_MARK = 9;

export class Brain {
  readonly #world: ExploreWorld;
  readonly #rules: ExploreRules;
  readonly #drift: DriftBound;
  readonly #answers = new Map<string, Answer | null>();
  /** By the number of the key's state. */
  readonly #judgements: (string | null)[] = [];

  constructor(world: ExploreWorld, rules: ExploreRules) {
    this.#world = world;
    this.#rules = rules;
    // A clock that is one ahead and then one behind has lost two.
    this.#drift = rules.drift({ driftRatio: 0, tickMs: 2 * world.lag });
  }

  /** What a granted request writes, or null when it is denied or changes nothing. */
  ask(request: Request, record: SmallRecord | null, floor: number): Answer | null {
    const { op, client, mark, proof, successor, knowledge } = request;
    const id = `${op}${client}${mark}${successor}${knowledge}${proof};${floor};${recordKey(record)}`;
    const known = this.#answers.get(id);
    if (known !== undefined) return known;
    const answer = this.#decide(request, record, floor);
    this.#answers.set(id, answer);
    return answer;
  }

  /** When a belief that counts from `from` ends, on the same clock. */
  endOf(from: number, validFor: number): number {
    const start = NOW_MS + from;
    return validityFrom({ monotonicMs: start, wallMs: start }, validFor, this.#drift).monotonicEndMs - NOW_MS;
  }

  isBelieved(end: number, clock: number): boolean {
    return isStillValid({ monotonicEndMs: end, wallEndMs: end }, { monotonicMs: clock, wallMs: clock });
  }

  hasEnded(record: SmallRecord): boolean {
    return endOfRecord(largeRecord(record, this.#world)) <= NOW_MS;
  }

  accepts(newest: number, fence: number): boolean {
    if (this.#rules.guard === "off") return true;
    const resource = new FencedResource(0);
    resource.write({ key: KEY, fence: BigInt(newest) }, () => 1);
    try {
      resource.write({ key: KEY, fence: BigInt(fence) }, () => 2);
      return true;
    } catch (error) {
      if (error instanceof StaleFenceError) return false;
      throw error;
    }
  }

  /**
   * What must be true of every record: nobody but its owner can renew or release it, not even
   * the owner can renew what is over, and once it has ended anybody can have the key.
   */
  judge({ id, record, floor }: KeyState): string | null {
    const known = this.#judgements[id];
    if (known !== undefined) return known;
    const broken =
      this.#strangersWin(record, floor) ?? this.#revives(record, floor) ?? this.#blocked(record, floor);
    this.#judgements[id] = broken;
    return broken;
  }

  #strangersWin(record: SmallRecord | null, floor: number): string | null {
    if (record === null) return null;
    for (const op of ["renew", "release", "handoff"] as const) {
      for (let client = 0; client < this.#world.clients; client += 1) {
        const request = { op, client, mark: 0, proof: null, successor: client, knowledge: "exact" } as const;
        if (this.#decide(request, record, floor) !== null) return "ownership";
      }
    }
    return null;
  }

  #revives(record: SmallRecord | null, floor: number): string | null {
    if (record === null || (record.state === "held" && record.expires > 0)) return null;
    const { holder: client, mark: proof } = record;
    const request = { op: "renew", client, mark: 0, proof, successor: 0, knowledge: "exact" } as const;
    return this.#decide(request, record, floor) === null ? null : "no-resurrection";
  }

  #blocked(record: SmallRecord | null, floor: number): string | null {
    if (record !== null && !this.hasEnded(record)) return null;
    for (let client = 0; client < this.#world.clients; client += 1) {
      const request = {
        op: "acquire",
        client,
        mark: 0,
        proof: null,
        successor: 0,
        knowledge: "exact",
      } as const;
      if (this.#decide(request, record, floor) === null) return "claimable";
    }
    return null;
  }

  #decide(request: Request, small: SmallRecord | null, floor: number): Answer | null {
    const { decide, policy } = this.#rules;
    const now = this.#instant(request.knowledge);
    const snapshot = {
      record: small === null ? null : largeRecord(small, this.#world),
      floor: BigInt(floor),
    };
    const { decision, effect } = decide(this.#command(request), snapshot, now, policy);
    if (decision.kind !== "granted" || effect.kind === "none") return null;
    const next = effect.kind === "write" ? smallRecord(effect.record) : null;
    const { generation, tokenHash, expiresAtMs } = decision.lease;
    return {
      next,
      generation: Number(generation),
      mark: markOf(tokenHash),
      validFor: Math.max(0, expiresAtMs - now.stampMs),
    };
  }

  /** An interval around the store's present, and an expiry that is never stamped too early. */
  #instant(knowledge: Knowledge): StoreInstant {
    const doubt = knowledge === "exact" ? 0 : this.#world.doubt;
    return { earliestMs: NOW_MS - doubt, latestMs: NOW_MS + doubt, stampMs: NOW_MS + doubt };
  }

  #command({ op, client, mark, proof, successor }: Request): LeaseCommand {
    const holder = nameOf(client);
    const base = { key: KEY, nonce: nonceOf(client * MARKS + mark) };
    const ttlMs = this.#world.ttlTicks;
    if (op === "revoke") return { ...base, op };
    if (op === "break") return { ...base, op, periodMs: PERIOD };
    if (op === "acquire") {
      return {
        ...base,
        op,
        holder,
        purpose: "Operation",
        ttlMs,
        tokenHash: tokenOf(client, mark),
        holdAtLeastMs: this.#world.holdAtLeast,
        lockDelayMs: this.#world.lockDelay,
      };
    }
    const tokenHash = tokenOf(client, proof ?? STRANGER_MARK);
    if (op === "renew") return { ...base, op, holder, tokenHash, ttlMs };
    if (op === "release") return { ...base, op, holder, tokenHash };
    return { ...base, op, holder, tokenHash, successor: nameOf(successor), withinMs: PERIOD };
  }
}

function nameOf(client: number): string {
  return `c${client}`;
}

function nonceOf(nonce: number | null): string {
  return nonce === null ? "old" : `n${nonce}`;
}

function tokenOf(client: number, mark: number): string {
  return `${client}${mark}`.padEnd(43, "0");
}

/** What was released has no token: its mark is of no account. */
function markOf(tokenHash: string): number {
  return tokenHash === NO_TOKEN_HASH ? 0 : Number(tokenHash[1]);
}

function largeRecord(record: SmallRecord, { ttlTicks: ttlMs, lockDelay }: ExploreWorld): LeaseRecord {
  const { holder, generation, mark, state, expires, breakAt, minHold, successor, deadline, nonce } = record;
  return plainRecord({
    key: KEY,
    holder: nameOf(holder),
    tokenHash: state === "released" && successor === null ? NO_TOKEN_HASH : tokenOf(holder, mark),
    generation: BigInt(generation),
    ttlMs,
    grantedAtMs: NOW_MS,
    renewedAtMs: NOW_MS,
    expiresAtMs: NOW_MS + expires,
    endedAtMs: state === "held" ? null : NOW_MS,
    state,
    breakAtMs: breakAt === null ? null : NOW_MS + breakAt,
    minHoldUntilMs: minHold === null ? null : NOW_MS + minHold,
    lockDelayMs: lockDelay,
    handoff: successor === null ? null : { successor: nameOf(successor), deadlineMs: NOW_MS + deadline },
    nonce: nonceOf(nonce),
  });
}

function smallRecord(record: LeaseRecord): SmallRecord {
  const { handoff } = record;
  return {
    holder: Number(record.holder.slice(1)),
    generation: Number(record.generation),
    mark: markOf(record.tokenHash),
    state: record.state,
    expires: record.expiresAtMs - NOW_MS,
    breakAt: record.breakAtMs === null ? null : record.breakAtMs - NOW_MS,
    minHold: record.minHoldUntilMs === null ? null : record.minHoldUntilMs - NOW_MS,
    successor: handoff === null ? null : Number(handoff.successor.slice(1)),
    deadline: handoff === null ? 0 : handoff.deadlineMs - NOW_MS,
    nonce: Number(record.nonce.slice(1)),
  };
}
