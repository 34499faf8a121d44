/**
 * The world of the model, run by the shipped code: `decide` makes the decisions, the validity functions the
 * beliefs, the guard the refusals. Each step of a trace is done here too, and what the model says about it
 * is compared with what the shipped code does.
 */
import { expect } from "vitest";
import {
  createPolicy,
  type Decided,
  type DriftBound,
  decide,
  endOfRecord,
  exactly,
  isStillValid,
  type LeaseCommand,
  type LeaseRecord,
  laterValidity,
  recordFence,
  type Validity,
  validityFrom,
} from "../../src/core/index.ts";
import { FencedResource } from "../../src/guards/index.ts";
import { StaleFenceError } from "../../src/guards/stale-fence-error.ts";
import { added, type ModelMessage, type ModelRecord, type ModelState, textOf } from "./trace.ts";

/** The model's TTL and MARGIN. */
const TTL = 5;
const KEY = { tenant: "default", name: "key" };
const POLICY = createPolicy({ maxTtlMs: 100, defaultTtlMs: TTL, generations: "count" });
const FORGED = "x".repeat(43);

/** Others than the shipped ones show that a changed rule is noticed. */
export interface CoreRules {
  readonly decide: typeof decide;
  readonly drift: DriftBound;
}

export const SHIPPED: CoreRules = { decide, drift: { driftRatio: 0, tickMs: 2 } };

interface Sent {
  readonly tokenHash: string;
  readonly next: LeaseRecord;
  readonly expects: number;
  readonly validFor: number;
}

interface Held {
  readonly fence: bigint;
  readonly tokenHash: string;
  readonly validity: Validity;
}

export class CoreWorld {
  readonly #decide: typeof decide;
  readonly #drift: DriftBound;
  #record: LeaseRecord | null = null;
  #version = 0;
  #floor = 0n;
  #attempts = 0;
  #now = 0;
  #clocks: Readonly<Record<string, number>> = {};
  readonly #held = new Map<string, Held>();
  readonly #sent = new Map<string, Sent>();
  readonly #resource = new FencedResource(0);

  constructor(rules: CoreRules = SHIPPED) {
    this.#decide = rules.decide;
    this.#drift = rules.drift;
  }

  start(first: ModelState): void {
    this.#time(first);
    this.#compare(first);
  }

  step(before: ModelState, after: ModelState): void {
    this.#time(after);
    this.#act(before, after);
    this.#compare(after);
  }

  #time({ now, clock }: ModelState): void {
    this.#now = now;
    this.#clocks = clock;
  }

  #act(before: ModelState, after: ModelState): void {
    switch (after.action) {
      case "tick":
        return;
      case "ask":
        for (const message of added(before.requests, after.requests)) this.#ask(message);
        return;
      case "refuse":
        expect(this.#decideFor(after.who, after.op).effect.kind, `${after.who} may not ${after.op}`).toBe(
          "none",
        );
        return;
      case "arrive":
        for (const message of added(after.requests, before.requests)) this.#arrive(message, after);
        return;
      case "receive":
        for (const message of added(after.replies, before.replies)) this.#receive(message);
        return;
      case "crash":
        this.#held.delete(after.who);
        for (const message of before.requests)
          if (message.by === after.who)
            this.#sent.set(textOf({ ...message, awaited: false }), this.#sentAs(message));
        return;
      case "collect":
        expect(this.#record !== null && endOfRecord(this.#record) <= this.#now).toBe(true);
        this.#floor = this.#record?.generation ?? 0n;
        this.#record = null;
        return;
      case "reach":
        for (const { fence } of added(after.writes, before.writes)) this.#write(BigInt(fence), after);
        return;
      default:
        expect(["lose", "write"]).toContain(after.action);
    }
  }

  #command(who: string, op: ModelMessage["op"]): LeaseCommand {
    this.#attempts += 1;
    const nonce = `n${this.#attempts}`;
    const base = { key: KEY, nonce, holder: who };
    const fresh = `${nonce}:`.padEnd(43, "0");
    if (op === "acquire") return { ...base, op, purpose: "Operation", ttlMs: TTL, tokenHash: fresh };
    const tokenHash = this.#held.get(who)?.tokenHash ?? FORGED;
    return op === "renew" ? { ...base, op, tokenHash, ttlMs: TTL } : { ...base, op, tokenHash };
  }

  #decideFor(who: string, op: ModelMessage["op"]): Decided {
    const snapshot = { record: this.#record, floor: this.#floor };
    return this.#decide(this.#command(who, op), snapshot, exactly(this.#now), POLICY);
  }

  #ask(message: ModelMessage): void {
    const { by, op } = message;
    const { decision, effect } = this.#decideFor(by, op);
    expect(effect.kind, `${by} may ${op}`).toBe("write");
    if (decision.kind !== "granted" || effect.kind !== "write") return;
    const expects = this.#record === null ? 0 : this.#version;
    const validFor = decision.lease.expiresAtMs - this.#now;
    expect({ next: small(effect.record), expects, sentAt: this.#clocks[by] }).toEqual({
      next: message.next,
      expects: message.expects,
      sentAt: message.sentAt,
    });
    this.#sent.set(textOf(message), {
      tokenHash: effect.record.tokenHash,
      next: effect.record,
      expects,
      validFor,
    });
    if (op === "release") this.#held.delete(by);
  }

  #arrive(message: ModelMessage, after: ModelState): void {
    const sent = this.#sentAs(message);
    const standing = this.#record === null ? 0 : this.#version;
    if (sent.expects !== standing) return;
    this.#record = sent.next;
    this.#version += 1;
    expect(small(this.#record)).toEqual(after.record);
  }

  #receive(message: ModelMessage): void {
    const { by, op, sentAt } = message;
    const { next, tokenHash, validFor } = this.#sentAs(message);
    const validity = validityFrom({ monotonicMs: sentAt, wallMs: sentAt }, validFor, this.#drift);
    const held = this.#held.get(by);
    if (op === "acquire") this.#held.set(by, { fence: recordFence(next), tokenHash, validity });
    // A handle whose time is over stays over, whatever it then hears.
    else if (op === "renew" && held !== undefined && this.#believes(by))
      this.#held.set(by, { ...held, validity: laterValidity(held.validity, validity) });
  }

  #write(fence: bigint, after: ModelState): void {
    try {
      this.#resource.write({ key: KEY, fence }, (count) => count + 1);
    } catch (error) {
      expect(error).toBeInstanceOf(StaleFenceError);
      expect(Number(fence)).toBeLessThan(after.newest);
    }
  }

  #believes(who: string): boolean {
    const held = this.#held.get(who);
    const clock = this.#clocks[who] ?? 0;
    return held !== undefined && isStillValid(held.validity, { monotonicMs: clock, wallMs: clock });
  }

  #sentAs(message: ModelMessage): Sent {
    const sent = this.#sent.get(textOf(message));
    if (sent === undefined) throw new Error(`nobody sent ${textOf(message)}`);
    return sent;
  }

  #compare(state: ModelState): void {
    const beliefs = Object.keys(state.belief).map((who) => {
      const held = this.#held.get(who);
      return [who, Number(held?.fence ?? 0n), held?.validity.monotonicEndMs ?? 0, this.#believes(who)];
    });
    const modelled = Object.entries(state.belief).map(([who, { generation, until }]) => [
      who,
      generation,
      until,
      generation > 0 && (state.clock[who] ?? 0) < until,
    ]);
    const newest = Number(this.#resource.newestFence);
    const floor = this.#record === null ? Number(this.#floor) : state.floor;
    expect({ record: small(this.#record), floor, newest, beliefs }).toEqual({
      record: state.record,
      floor: state.floor,
      newest: state.newest,
      beliefs: modelled,
    });
  }
}

function small(record: LeaseRecord | null): ModelRecord {
  if (record === null) return { holder: "", generation: 0, expires: 0, state: "absent" };
  const { holder, generation, expiresAtMs, state } = record;
  return {
    holder,
    generation: Number(generation),
    expires: expiresAtMs,
    state: state as ModelRecord["state"],
  };
}
