/**
 * A small world for `decide`: one key, a store with compare-and-swap, three holders and an operator who
 * know the store's time only as an interval, and requests that land late or never. After every step the
 * world checks what must hold; a broken promise throws an error that says which.
 *
 * A belief is what a holder may think at most after a write of its own: it starts when the decision was
 * made and lasts as long as the lease, measured from the stamp, and never longer than its ttl. An answer
 * without a write (a repeat, a use) prolongs nothing, so it starts no belief. Rates are perfect here;
 * `validity.test.ts` is about clocks that drift.
 */
import assert from "node:assert/strict";
import {
  type Decided,
  endOfRecord,
  exactly,
  type LeaseCommand,
  type LeasePolicy,
  type LeaseRecord,
  NO_TOKEN_HASH,
  recordFence,
} from "../../src/core/index.ts";
import { acquire, breakLease, Cell, handoff, hashOf, release, renew, resume, revoke, use } from "./cell.ts";

export interface Step {
  readonly kind: "command" | "land" | "collect" | "wait";
  readonly op: LeaseCommand["op"];
  readonly actor: number;
  readonly successor: number;
  readonly ttlMs: number;
  readonly waitMs: number;
  /** How far the known interval reaches before and after the true store time. */
  readonly earlyMs: number;
  readonly lateMs: number;
  /** Which of the actor's grants the command speaks of, counted from the newest. */
  readonly grant: number;
  readonly term: bigint | undefined;
  readonly idempotencyKey: string | undefined;
  readonly delivery: "at once" | "later";
}

interface Belief {
  readonly holder: string;
  readonly fence: bigint;
  readonly tokenHash: string;
  readonly generation: bigint;
  endMs: number;
  stopped: boolean;
}

interface Request {
  readonly command: LeaseCommand;
  readonly decided: Decided;
  readonly before: LeaseRecord | null;
  readonly version: number;
  readonly decidedMs: number;
  readonly stampMs: number;
}

const HOLDERS = ["a", "b", "c"];

export class History {
  readonly #cell: Cell;
  readonly #beliefs: Belief[] = [];
  readonly #requests: Request[] = [];
  #nowMs = 1_000;
  #tokens = 0;
  #highestFence = 0n;
  /** What landed, for the message of a failure. */
  readonly #trace: string[] = [];
  /** How often what happened, to show that a run was worth something. */
  readonly counts = { grants: 0, takeovers: 0, renewals: 0, conflicts: 0, denials: 0, replays: 0 };

  constructor(policy: LeasePolicy) {
    this.#cell = new Cell(policy);
  }

  play(steps: readonly Step[]): void {
    try {
      for (const step of steps) this.#play(step);
    } catch (error) {
      throw new Error(`${String(error)}\n${this.#trace.join("\n")}`);
    }
  }

  #play(step: Step): void {
    if (step.kind === "wait") this.#nowMs += step.waitMs;
    else if (step.kind === "collect") this.#collect();
    else if (step.kind === "land") this.#landOne(step.grant);
    else this.#issue(step);
    this.#checkBelievers();
    this.#checkClaimable();
  }

  #landOne(index: number): void {
    const [request] = this.#requests.splice(index % (this.#requests.length || 1), 1);
    if (request !== undefined) this.#land(request);
  }

  #issue(step: Step): void {
    const command = this.#command(step);
    const latestMs = this.#nowMs + step.lateMs;
    const now = { earliestMs: Math.max(0, this.#nowMs - step.earlyMs), latestMs, stampMs: latestMs };
    const before = this.#cell.record;
    const decided = this.#cell.ask(command, now);
    // A holder stops before it says so, whatever becomes of the message.
    if (command.op === "release" || command.op === "handoff") this.#stop(command.holder);
    this.#checkDecision(command, decided, before, now.latestMs);
    const request = {
      command,
      decided,
      before,
      version: this.#cell.version,
      decidedMs: this.#nowMs,
      stampMs: latestMs,
    };
    if (step.delivery === "later" && decided.effect.kind !== "none") this.#requests.push(request);
    else this.#land(request);
  }

  #land(request: Request): void {
    const { command, decided, before } = request;
    this.#trace.push(`${this.#nowMs} ${tell(request, this.#cell.version)}`);
    if (decided.decision.kind !== "granted") {
      this.counts.denials += 1;
      return;
    }
    if (!this.#cell.apply(decided, request.version)) {
      this.counts.conflicts += 1;
      return;
    }
    const { lease, replayed } = decided.decision;
    if (decided.effect.kind === "write") this.#checkWrite(command, before, lease);
    if (replayed) this.counts.replays += 1;
    if (!["acquire", "renew", "resume"].includes(command.op)) return;
    const validForMs = Math.min(lease.ttlMs, lease.expiresAtMs - request.stampMs);
    if (decided.effect.kind === "write") this.#believe(lease, request.decidedMs + validForMs);
    if (before === null || before.generation !== lease.generation) this.counts.grants += 1;
    else if (command.op === "renew" && !replayed) this.counts.renewals += 1;
    if (before?.state === "held" && before.holder !== lease.holder) this.counts.takeovers += 1;
  }

  #believe(lease: LeaseRecord, endMs: number): void {
    const { holder, tokenHash, generation } = lease;
    const fence = recordFence(lease);
    const known = this.#beliefs.find((belief) => belief.fence === fence);
    const belief = known ?? { holder, fence, tokenHash, generation, endMs: 0, stopped: false };
    if (known === undefined) this.#beliefs.push(belief);
    belief.endMs = Math.max(belief.endMs, endMs);
    belief.stopped = false;
  }

  #stop(holder: string): void {
    for (const belief of this.#beliefs) if (belief.holder === holder) belief.stopped = true;
  }

  /** Only when no request is under way: the retention is longer than any request lives. */
  #collect(): void {
    const { record, policy } = this.#cell;
    if (record === null || this.#requests.length > 0 || record.term !== policy.baseTerm) return;
    if (this.#nowMs >= endOfRecord(record)) this.#cell.collect();
  }

  #believers(): readonly Belief[] {
    return this.#beliefs.filter((belief) => !belief.stopped && this.#nowMs < belief.endMs);
  }

  #checkBelievers(): void {
    const believers = this.#believers();
    const holders = new Set(believers.map((belief) => belief.holder));
    assert.ok(holders.size <= 1, `LeaseUniqueness: ${[...holders].join(" and ")} both believe`);
    const { record, policy } = this.#cell;
    for (const belief of believers) {
      assert.ok(record !== null, "BeliefConsistency: somebody believes and there is no record");
      assert.equal(record.holder, belief.holder, "BeliefConsistency: the record names another holder");
      assert.notEqual(record.state, "released", "BeliefConsistency: the lease of a believer is released");
      assert.ok(record.expiresAtMs >= belief.endMs, "the record ends before the belief does");
      if (policy.reacquire === "deny" && record.term === policy.baseTerm)
        assert.equal(recordFence(record), belief.fence, "BeliefConsistency: the record is of another grant");
    }
  }

  /** ExpiredLeaseClaimable: once its time has passed, anybody may have the lease, whatever happened. */
  #checkClaimable(): void {
    const { record } = this.#cell;
    const overMs = record === null ? 0 : Math.max(record.expiresAtMs, endOfRecord(record));
    const claim = acquire("z", { ttlMs: 10, ...(record === null ? {} : { term: record.term }) });
    const { decision } = this.#cell.ask(claim, exactly(Math.max(this.#nowMs, overMs)));
    assert.equal(decision.kind, "granted", `ExpiredLeaseClaimable: ${decision.reason}`);
  }

  #checkDecision(
    command: LeaseCommand,
    decided: Decided,
    before: LeaseRecord | null,
    latestMs: number,
  ): void {
    const { decision } = decided;
    if (decision.kind !== "granted") return;
    const { lease } = decision;
    if (["acquire", "renew", "use", "resume"].includes(command.op)) {
      assert.equal(lease.state, "held", "a granted lease is not held");
      assert.ok(latestMs < lease.expiresAtMs, "a granted lease is over already");
    }
    if (["renew", "use", "resume"].includes(command.op)) {
      assert.equal(before?.state, "held", "an ended lease came back to life");
      const tolerated = command.op === "renew" && this.#cell.policy.renewExpired === "if-unclaimed";
      assert.ok(tolerated || latestMs < (before?.expiresAtMs ?? 0), "an expired lease came back to life");
      assert.equal(lease.generation, before?.generation, "a renewal changed the fence");
    }
    if ("holder" in command) assert.equal(lease.holder, command.holder, "a lease was given to another");
  }

  #checkWrite(command: LeaseCommand, before: LeaseRecord | null, after: LeaseRecord): void {
    const fence = recordFence(after);
    const fresh = before === null || fence !== recordFence(before);
    if (fresh) {
      assert.equal(command.op, "acquire", "only an acquire makes a new grant");
      assert.ok(fence > this.#highestFence, "FencingTokenMonotonic: a grant did not raise the fence");
    }
    assert.ok(fence >= this.#highestFence, "FencingTokenMonotonic: the fence went back");
    this.#highestFence = fence;
    for (const belief of this.#believers()) {
      const observedEndMs = this.#nowMs + after.ttlMs;
      assert.ok(belief.endMs <= observedEndMs, "an observer of a whole ttl would be too early");
    }
    if (before === null) return;
    const limitMs = before.breakAtMs;
    const succession = before.holder === after.holder && before.state === "held";
    if (limitMs !== null && succession && this.#nowMs < before.expiresAtMs)
      assert.ok(after.expiresAtMs <= Math.max(limitMs, before.expiresAtMs), "a holder outran a break");
    if (fresh) return;
    assert.equal(after.purpose, before.purpose, "the purpose changed within a grant");
    const isCleared = command.op === "release" && after.tokenHash === NO_TOKEN_HASH;
    if (!isCleared) assert.equal(after.tokenHash, before.tokenHash, "the token changed within a grant");
    assert.equal(after.grantedAtMs, before.grantedAtMs, "the time of the grant changed");
    if ((command.op === "release" || command.op === "handoff") && this.#cell.policy.proof === "token")
      assert.equal(command.tokenHash, before.tokenHash, "a release ended the grant of another token");
  }

  #command(step: Step): LeaseCommand {
    const holder = HOLDERS[step.actor] ?? "a";
    const own = this.#beliefs.filter((belief) => belief.holder === holder).reverse();
    const belief = own[step.grant % (own.length || 1)];
    this.#tokens += 1;
    const nonce = `n${this.#tokens}`;
    const fresh = hashOf(`t${this.#tokens}`);
    const tokenHash = belief?.tokenHash ?? fresh;
    const { ttlMs, term, idempotencyKey } = step;
    const base = {
      nonce,
      ...(idempotencyKey === undefined
        ? {}
        : {
            idempotency: {
              keyHash: hashOf(idempotencyKey),
              fingerprint: hashOf(holder),
              sealedToken: "",
            },
          }),
    };
    const owner = { ...base, tokenHash, generation: belief?.generation ?? 1n };
    switch (step.op) {
      case "acquire":
        return acquire(holder, {
          ...base,
          ttlMs,
          tokenHash: fresh,
          provenTokenHash: tokenHash,
          ...(term === undefined ? {} : { term }),
        });
      case "renew":
        return renew(holder, { ...owner, ttlMs });
      case "release":
        return release(holder, owner);
      case "use":
        return use(holder, owner);
      case "resume":
        return resume(holder, owner);
      case "handoff":
        return handoff(holder, HOLDERS[step.successor] ?? "a", { ...owner, withinMs: ttlMs });
      case "revoke":
        return revoke(base);
      case "break":
        return breakLease(ttlMs, base);
    }
  }
}

function tell({ command, decided, version, decidedMs, stampMs }: Request, currentVersion: number): string {
  const { decision, effect } = decided;
  const who = "holder" in command ? command.holder : "operator";
  const ttl = "ttlMs" in command ? ` for ${command.ttlMs}` : "";
  const decidedOn = `${who} ${command.op}${ttl}, decided at ${decidedMs}, stamp ${stampMs}`;
  if (decision.kind !== "granted") return `${decidedOn}: ${decision.reason}`;
  if (effect.kind !== "none" && version !== currentVersion) return `${decidedOn}: conflict`;
  const { state, generation, ttlMs, expiresAtMs } = decision.lease;
  const how = effect.kind === "none" ? "unchanged" : "written";
  return `${decidedOn}: ${how} ${state} generation ${generation} ttl ${ttlMs} until ${expiresAtMs}`;
}
