/**
 * What one case works with: clients that are closed at its end, tenants nobody else uses, records with
 * fresh nonces, and waiting that is bounded. Nothing here judges the store.
 */
import { ok } from "node:assert/strict";
import { type LeaseKey, type LeaseRecord, plainRecord } from "../core/index.ts";
import { type Env, randomId, realEnv } from "../env/index.ts";
import type { ConditionalWrite, LeaseStore, StoredRecord, WriteResult } from "../store/index.ts";
import type { FaultyClient, KitChild, StoreSubject } from "./store-under-test.ts";

const DEFAULT_PATIENCE_MS = 10_000;
const INSTANT_MS = 1_750_000_000_000;
const TOKEN_HASH = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";

export type FoundRecord = Extract<StoredRecord, { kind: "found" }>;

/** A case that is given its bench. */
export interface BenchCase {
  readonly title: string;
  /** What the subject must offer for this case to exist. */
  readonly needs?: "corrupt" | "openFaulty" | "jumpClock" | "child";
  run(bench: StoreBench): Promise<void>;
}

export class StoreBench {
  readonly env: Env;
  readonly subject: StoreSubject;
  readonly patienceMs: number;
  /** A tenant of this case alone. */
  readonly tenant: string;
  readonly #clients = new Set<LeaseStore>();

  constructor(subject: StoreSubject) {
    this.subject = subject;
    this.env = subject.env ?? realEnv;
    this.patienceMs = subject.patienceMs ?? DEFAULT_PATIENCE_MS;
    this.tenant = this.newTenant();
  }

  /** 48 random bits: two cases never meet. */
  newTenant(): string {
    return `kit-${Buffer.from(this.env.randomBytes(6)).toString("hex")}`;
  }

  async open(): Promise<LeaseStore> {
    return this.#keep(await this.subject.open());
  }

  /** A second client of the same data, or the first one again where there cannot be two. */
  async openSecond(first: LeaseStore): Promise<LeaseStore> {
    return this.subject.openSecond === undefined ? first : this.#keep(await this.subject.openSecond());
  }

  async openFaulty(): Promise<FaultyClient> {
    const client = await this.#offered("openFaulty")();
    this.#keep(client.store);
    return client;
  }

  async corrupt(key: LeaseKey): Promise<void> {
    await this.#offered("corrupt")(key);
  }

  async jumpClock(byMs: number): Promise<void> {
    await this.#offered("jumpClock")(byMs);
  }

  child(): KitChild {
    return this.#offered("child")();
  }

  /** What the subject offers; a case that needs it exists only where it does. */
  #offered<Name extends NonNullable<BenchCase["needs"]>>(name: Name): NonNullable<StoreSubject[Name]> {
    const offered = this.subject[name];
    if (offered === undefined) throw new Error(`the subject has no ${name}`);
    return offered.bind(this.subject) as NonNullable<StoreSubject[Name]>;
  }

  /** `full` as it is, or a smaller number for stores where a write takes milliseconds. */
  amount(full: number, reduced: number): number {
    return this.subject.effort === "reduced" ? reduced : full;
  }

  key(name: string): LeaseKey {
    return { tenant: this.tenant, name };
  }

  /** A held record. Its nonce is new each time, as the contract of records demands. */
  record(key: LeaseKey, changes: Partial<LeaseRecord> = {}): LeaseRecord {
    return plainRecord({
      key,
      holder: "holder-1",
      tokenHash: TOKEN_HASH,
      ttlMs: 30_000,
      grantedAtMs: INSTANT_MS,
      renewedAtMs: INSTANT_MS,
      expiresAtMs: INSTANT_MS + 30_000,
      nonce: randomId(this.env),
      ...changes,
    });
  }

  /** Rejects when `promise` has not settled after the kit's patience. */
  async inTime<T>(what: string, promise: Promise<T>): Promise<T> {
    let expire: () => void = () => undefined;
    const expired = new Promise<never>((_, reject) => {
      expire = () => reject(new Error(`${what}: nothing happened within ${this.patienceMs} ms`));
    });
    const timer = this.env.timer(this.patienceMs, expire, { keepAlive: true });
    try {
      return await Promise.race([promise, expired]);
    } finally {
      timer.cancel();
    }
  }

  async dispose(): Promise<void> {
    for (const client of this.#clients) await client.close();
    await this.subject.cleanup?.();
  }

  #keep(store: LeaseStore): LeaseStore {
    this.#clients.add(store);
    return store;
  }
}

/** One write in a call of its own. */
export async function applyOne(
  store: LeaseStore,
  key: LeaseKey,
  expected: string | null,
  next: LeaseRecord | null,
): Promise<WriteResult> {
  return nth(await applyAll(store, [{ key, expected, next }]), 0);
}

/** As many results as writes, or the store dropped or invented one. */
export async function applyAll(
  store: LeaseStore,
  writes: readonly ConditionalWrite[],
): Promise<readonly WriteResult[]> {
  const { results } = await store.apply(writes);
  ok(
    results.length === writes.length,
    `apply answered ${results.length} results for ${writes.length} writes: one result per write is due`,
  );
  return results;
}

export async function readOne(store: LeaseStore, key: LeaseKey): Promise<StoredRecord> {
  return nth(await readAll(store, [key]), 0);
}

export async function readAll(
  store: LeaseStore,
  keys: readonly LeaseKey[],
): Promise<readonly StoredRecord[]> {
  const { records } = await store.read(keys);
  ok(
    records.length === keys.length,
    `read answered ${records.length} records for ${keys.length} keys: one per key is due`,
  );
  return records;
}

export function nth<T>(list: readonly T[], index: number): T {
  const item = list[index];
  ok(item !== undefined, `item ${index} of ${list.length} is missing`);
  return item;
}
