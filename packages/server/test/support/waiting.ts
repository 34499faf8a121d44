/** A line of waiters for one lease, in memory and by a clock of the test: who asks, who was granted, who has gone. */
import { decorateStore, MemoryStore, StoreExecutor } from "solehold";
import {
  type CommandOutcome,
  encodeProblem,
  LeaseService,
  ManualEnv,
  MemoryAuditTrail,
  settle,
  watchRecords,
} from "solehold/internal";
import type { Connection } from "../../src/access/call.ts";
import { problemOf } from "../../src/protocol/problem.ts";
import { WaitQueue } from "../../src/waiting/wait-queue.ts";

export const key = { tenant: "default", name: "job" };

class TestConnection implements Connection {
  #gone = false;
  #cancelled = false;
  readonly #listeners = new Set<() => void>();

  isGone(): boolean {
    return this.#gone;
  }

  isCancelled(): boolean {
    return this.#cancelled;
  }

  onGone(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  drop(): void {
    this.#gone = true;
    for (const listener of this.#listeners) listener();
  }

  cancel(): void {
    this.#cancelled = true;
    this.drop();
  }
}

export interface Caller {
  readonly holder: string;
  readonly connection: TestConnection;
  readonly token: string;
  /** "waiting", the holder's fence as text when granted, the reason when denied, the status when rejected. */
  state: string;
}

export class World {
  readonly env = new ManualEnv();
  readonly store = new MemoryStore({ env: this.env });
  /** While it is "down" no read and no write reaches the store. */
  reach: "up" | "down" = "up";
  readonly executor = new StoreExecutor({
    env: this.env,
    policy: { generations: "count" },
    store: decorateStore(this.store, {
      read: async (keys) => await this.#reached().read(keys),
      apply: async (writes) => await this.#reached().apply(writes),
    }),
  });
  readonly audit = new MemoryAuditTrail({ capacity: 10_000 });
  readonly service = new LeaseService({ executor: this.executor, audit: this.audit, env: this.env });
  readonly queue: WaitQueue;
  /** Who got the lease, in order. */
  readonly granted: string[] = [];

  constructor(limits: { readonly waiterLimit?: number; readonly waitLimitMs?: number } = {}) {
    const { waiterLimit = 100, waitLimitMs = 600_000 } = limits;
    this.queue = new WaitQueue({ env: this.env, service: this.service, waiterLimit, waitLimitMs });
  }

  /** As a server does: with the store's events. */
  async follow(): Promise<void> {
    const all = { tenant: null, prefix: "" };
    await watchRecords(this.executor, this.env, all, (event) => this.queue.onStoreEvent(event));
  }

  #reached(): MemoryStore {
    if (this.reach === "down") throw new Error("down");
    return this.store;
  }

  ask(
    holder: string,
    options: {
      waitMs?: number;
      ttlMs?: number;
      repeatable?: "no" | "by token" | "by key";
      idempotencyKey?: string;
    } = {},
  ): Caller {
    const { waitMs = 60_000, ttlMs = 10_000, repeatable = "no", idempotencyKey } = options;
    const connection = new TestConnection();
    const caller: Caller = { holder, connection, token: `token-of-${holder}`, state: "waiting" };
    const extra = idempotencyKey === undefined ? {} : { idempotencyKey };
    const request = { op: "acquire", key, holder, ttlMs, token: caller.token, ...extra } as const;
    this.queue.acquire(request, {}, { waitMs, connection, repeatable }).then(
      (outcome) => {
        caller.state = stateOf(outcome);
        if (outcome.kind === "applied") this.granted.push(holder);
      },
      (error: unknown) => {
        caller.state = String(encodeProblem(problemOf(error), "").status);
      },
    );
    return caller;
  }

  async release({ holder, token }: Caller): Promise<void> {
    const outcome = await this.service.execute({ op: "release", key, holder, token });
    if (outcome.kind === "applied") this.queue.notice(key, outcome.decision.lease);
    await settle();
  }

  async holder(): Promise<string | null> {
    const lease = await this.service.read(key);
    return lease?.live === true ? lease.holder : null;
  }
}

function stateOf(outcome: CommandOutcome): string {
  if (outcome.kind === "applied") return `granted ${outcome.decision.lease.generation}`;
  return outcome.kind === "refused" ? outcome.decision.reason : outcome.outcome;
}

export async function heldWorld(
  waiters: readonly string[],
): Promise<{ world: World; owner: Caller; line: Caller[] }> {
  const world = new World();
  const owner = world.ask("owner");
  await settle();
  const line: Caller[] = [];
  for (const name of waiters) {
    line.push(world.ask(name));
    await settle();
  }
  return { world, owner, line };
}
