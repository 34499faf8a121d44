/**
 * Tickets: how processes that wait for a key know of each other. Each has one record of its own under a reserved name,
 * `$wait/<hash of the key's name>/<id>`, so that nobody has to win a race to be seen. The record says which turn its
 * process waits for: a number that grows when it was served and waits again.
 *
 * Tickets decide nothing: they tell a releaser whom to reserve the key for. One that its process has not written for
 * TICKET_LIFE_MS is left over from a process that died, and is deleted by the first process that sees it.
 */
import { type LeaseKey, type LeaseRecord, plainRecord } from "../core/index.ts";
import { randomId, readClocks } from "../env/index.ts";
import type { LeaseStore, ListPage, StoreEvent, WatchScope } from "../store/index.ts";
import type { ExecutorParts } from "./parts.ts";
import { sha256 } from "./tokens.ts";

export interface WaitTicket {
  readonly id: string;
  readonly turn: number;
  /** When its process began to wait for this turn, by the store's clock as far as that process knew it. */
  readonly sinceMs: number;
  /** How long it had waited when its process wrote it last. No other clock has a part in that. */
  readonly waitedMs: number;
  /** How long the key has to be kept for its process to come for it: one far from the store needs longer. */
  readonly withinMs: number;
  /** Of those who wait in its process the highest. */
  readonly priority: number;
}

/** What a process says of itself; when it began to wait is kept with it. */
export type OwnTicket = Omit<WaitTicket, "sinceMs" | "waitedMs">;

export const TICKET_PREFIX = "$wait/";
/** A process that waits writes its ticket again long before this. */
export const TICKET_LIFE_MS = 30_000;
const MAX_LISTED = 200;
const MAX_COUNTED = 1_000;
const MAX_TRIES = 3;
const HASH_LENGTH = 22;

export class WaitTickets {
  readonly #parts: ExecutorParts;

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
  }

  /** Without a watch nobody would learn of a ticket in time; without deletion they would pile up. */
  static areSupportedBy({ capabilities }: LeaseStore): boolean {
    return capabilities.watch && capabilities.conditionalDelete;
  }

  scopeOf({ tenant, name }: LeaseKey): WatchScope {
    return { tenant, prefix: `${TICKET_PREFIX}${sha256(name).slice(0, HASH_LENGTH)}/` };
  }

  /** What a watch event of the scope says: the ticket, or the id of one that is gone, or null when it says nothing. */
  read(event: StoreEvent): WaitTicket | { readonly id: string; readonly turn: null } | null {
    if (event.kind !== "changed" || event.stored === null || event.stored.kind === "corrupt") return null;
    if (event.stored.kind === "found") return ticketOf(event.stored.record);
    return { id: event.key.name.slice(event.key.name.lastIndexOf("/") + 1), turn: null };
  }

  /** Those of living processes, in the order of their waits. Rejects with a StoreError. */
  async list(key: LeaseKey): Promise<readonly WaitTicket[]> {
    const { store } = this.#parts;
    const { tenant, prefix } = this.scopeOf(key);
    if (store.list === undefined || tenant === null) return [];
    const { records, storeTimeMs } = await store.list({ tenant, prefix, limit: MAX_LISTED });
    const isOver = (record: LeaseRecord): boolean =>
      storeTimeMs !== null && record.expiresAtMs + TICKET_LIFE_MS < storeTimeMs;
    for (const record of records) if (isOver(record)) this.remove(key, record.holder).catch(() => undefined);
    const tickets = records.filter((record) => !isOver(record)).map(ticketOf);
    return tickets.sort((a, b) => a.sinceMs - b.sinceMs);
  }

  /** How many processes wait for each key of a tenant, as far as they show it. Rejects with a StoreError. */
  async counts(tenant: string): Promise<(name: string) => number> {
    const counts = new Map<string, number>();
    const listed = await this.#listAll(tenant);
    for (const { key, expiresAtMs } of listed?.records ?? []) {
      if (expiresAtMs < (listed?.storeTimeMs ?? 0)) continue;
      const prefix = prefixOf(key);
      counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    }
    return (name) => counts.get(this.scopeOf({ tenant, name }).prefix) ?? 0;
  }

  /** Which keys of a tenant may have tickets: never false for one that has. Rejects with a StoreError. */
  async mayHave(tenant: string): Promise<(key: LeaseKey) => boolean> {
    const listed = await this.#listAll(tenant);
    if (listed === undefined) return () => false;
    if (listed.next !== null) return () => true;
    const prefixes = new Set(listed.records.map(({ key }) => prefixOf(key)));
    return (key) => prefixes.size > 0 && prefixes.has(this.scopeOf(key).prefix);
  }

  /** Writes the ticket, whatever it was before: only its own process does so. Rejects with a StoreError. */
  async put(key: LeaseKey, ticket: OwnTicket, sinceMs: number | null): Promise<number> {
    const { env, cache } = this.#parts;
    const { stampMs } = cache.time(readClocks(env));
    const since = sinceMs ?? stampMs;
    await this.#write(key, ticket.id, (of) => ticketRecord(of, ticket, since, stampMs, randomId(env)));
    return since;
  }

  async remove(key: LeaseKey, id: string): Promise<void> {
    await this.#write(key, id, () => null);
  }

  async #listAll(tenant: string): Promise<ListPage | undefined> {
    return await this.#parts.store.list?.({ tenant, prefix: TICKET_PREFIX, limit: MAX_COUNTED });
  }

  async #write(key: LeaseKey, id: string, next: (of: LeaseKey) => LeaseRecord | null): Promise<void> {
    const { calls } = this.#parts;
    const of: LeaseKey = { tenant: key.tenant, name: `${this.scopeOf(key).prefix}${id}` };
    const record = next(of);
    let expected = record === null ? await this.#versionOf(of) : (this.#versions.get(of.name) ?? null);
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      if (record === null && expected === null) return;
      const { value } = await calls.write({ key: of, expected, next: record });
      if (value.kind === "unknown") {
        this.#versions.delete(of.name);
        throw value.cause;
      }
      if (value.kind === "applied") {
        if (value.version === null) this.#versions.delete(of.name);
        else this.#versions.set(of.name, value.version);
        return;
      }
      expected = value.current.kind === "absent" ? null : value.current.version;
    }
  }

  /** Of the tickets that this process wrote. */
  readonly #versions = new Map<string, string>();

  async #versionOf(of: LeaseKey): Promise<string | null> {
    const known = this.#versions.get(of.name);
    if (known !== undefined) return known;
    const { stored } = (await this.#parts.calls.read(of)).value;
    return stored.kind === "absent" ? null : stored.version;
  }
}

/** The part of a ticket's name that all tickets of its key have in common. */
function prefixOf({ name }: LeaseKey): string {
  return name.slice(0, name.lastIndexOf("/") + 1);
}

function ticketOf({ holder, term, generation, grantedAtMs, renewedAtMs, ttlMs }: LeaseRecord): WaitTicket {
  const [turn, priority] = [Number(generation), Number(term)];
  const waitedMs = Math.max(0, renewedAtMs - grantedAtMs);
  return { id: holder, turn, sinceMs: grantedAtMs, waitedMs, withinMs: ttlMs, priority };
}

/** "released", because it is no lease: nobody holds it, and it counts for nobody. */
function ticketRecord(
  key: LeaseKey,
  ticket: OwnTicket,
  sinceMs: number,
  nowMs: number,
  nonce: string,
): LeaseRecord {
  const endedAtMs = nowMs + TICKET_LIFE_MS;
  return plainRecord({
    key,
    holder: ticket.id,
    term: BigInt(ticket.priority),
    generation: BigInt(ticket.turn),
    ttlMs: ticket.withinMs,
    grantedAtMs: sinceMs,
    renewedAtMs: nowMs,
    expiresAtMs: endedAtMs,
    endedAtMs,
    state: "released",
    nonce,
  });
}
