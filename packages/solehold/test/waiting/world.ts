/** Waiters for one lease, in memory and by a clock of the test: who asks, who was granted, who has gone. */
import { MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv, settle } from "../../src/env/index.ts";
import { type CommandOutcome, type Recipient, StoreExecutor } from "../../src/executor/index.ts";
import { LeaseService } from "../../src/layers/index.ts";
import { decorateStore, MemoryStore, StoreError } from "../../src/store/index.ts";
import { WaitEndedError, type WaitQueue, withWaitQueue } from "../../src/waiting/index.ts";

export const key = { tenant: "default", name: "job" };

class TestConnection implements Recipient {
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
  /** Known once it was granted, or chosen by the caller. */
  token: string;
  /** "waiting", the generation when granted, the reason when denied, otherwise how the wait ended. */
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
      read: async (keys) => await (await this.#reached()).read(keys),
      apply: async (writes) => await (await this.#reached()).apply(writes),
    }),
  });
  readonly audit = new MemoryAuditTrail({ capacity: 10_000 });
  readonly service = new LeaseService({ executor: this.executor, audit: this.audit, env: this.env });
  readonly queue: WaitQueue;
  /** Who got the lease, in order. */
  readonly granted: string[] = [];

  #opened: Promise<void> = Promise.resolve();

  constructor(limits: { readonly maxWaiters?: number; readonly maxWaitMs?: number } = {}) {
    this.queue = withWaitQueue({ env: this.env, ...limits })(this.service);
  }

  /** From now on the store holds what it is asked, until what this returns is called. */
  freeze(): () => void {
    let open: () => void = () => undefined;
    this.#opened = new Promise((resolve) => {
      open = resolve;
    });
    return open;
  }

  async #reached(): Promise<MemoryStore> {
    await this.#opened;
    if (this.reach === "down") throw new StoreError("unreachable", "down", { outcome: "not-applied" });
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
    const token = repeatable === "by token" ? { token: caller.token } : {};
    const request = { op: "acquire", key, holder, ttlMs, ...token, ...extra } as const;
    const asked = this.queue.execute(request, { wait: { waitMs }, recipient: connection });
    void asked.then((outcome) => {
      caller.state = stateOf(outcome);
      if (outcome.kind !== "applied") return;
      caller.token = outcome.token;
      this.granted.push(holder);
    });
    return caller;
  }

  async release({ holder, token }: Caller): Promise<void> {
    await this.queue.execute({ op: "release", key, holder, token });
    await settle();
  }

  /** By another process: the queue learns of it from the store. */
  async releaseElsewhere({ holder, token }: Caller): Promise<void> {
    await this.service.execute({ op: "release", key, holder, token });
  }

  async holder(): Promise<string | null> {
    const lease = await this.service.read(key);
    return lease?.live === true ? lease.holder : null;
  }
}

function stateOf(outcome: CommandOutcome): string {
  if (outcome.kind === "applied") return `granted ${outcome.decision.lease.generation}`;
  if (outcome.kind === "refused") return outcome.decision.reason;
  return outcome.cause instanceof WaitEndedError ? outcome.cause.end : outcome.outcome;
}

export async function heldWorld(
  waiters: readonly string[],
): Promise<{ world: World; owner: Caller; waiting: Caller[] }> {
  const world = new World();
  const owner = world.ask("owner");
  await settle();
  const waiting: Caller[] = [];
  for (const name of waiters) {
    waiting.push(world.ask(name));
    await settle();
  }
  return { world, owner, waiting };
}
