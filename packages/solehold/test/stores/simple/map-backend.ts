/** A backend in memory, shared by as many stores as a test wants, with a way to make it fail. */
import { keyId, type LeaseKey } from "../../../src/core/index.ts";
import type {
  BackendReply,
  ConditionalPut,
  ConditionalReply,
  GetReply,
  ListRange,
  ListReply,
  SimpleBackend,
  StoredValue,
  WatchListener,
  WatchScope,
} from "../../../src/store/index.ts";

type Item = StoredValue & { readonly key: LeaseKey };

/** The data, as a server would hold it. */
export class MapServer {
  readonly items = new Map<string, Item>();
  readonly listeners = new Set<WatchListener>();

  write(key: LeaseKey, value: StoredValue | null): void {
    if (value === null) this.items.delete(keyId(key));
    else this.items.set(keyId(key), { key, ...value });
    for (const listener of this.listeners)
      queueMicrotask(() => listener({ kind: "changed", key, stored: null }));
  }
}

export class MapBackend implements SimpleBackend {
  readonly server: MapServer;
  /** What every reply carries. */
  reply: () => BackendReply = () => ({ timeMs: Math.floor(performance.now()) });
  /** Runs before a write is done, and may throw. */
  beforeWrite: (signal: AbortSignal) => void | Promise<void> = () => undefined;
  /** Runs after a write was done, and may throw. */
  afterWrite: () => void | Promise<void> = () => undefined;
  closed = 0;

  constructor(server = new MapServer()) {
    this.server = server;
  }

  async get(key: LeaseKey): Promise<GetReply> {
    return { ...this.reply(), value: this.server.items.get(keyId(key)) ?? null };
  }

  putIf({ key, expected, text, newVersion }: ConditionalPut, signal: AbortSignal): Promise<ConditionalReply> {
    return this.#write(key, expected, { text, version: newVersion }, signal);
  }

  deleteIf(key: LeaseKey, expected: string, signal: AbortSignal): Promise<ConditionalReply> {
    return this.#write(key, expected, null, signal);
  }

  async list({ tenant, prefix, after, limit }: ListRange): Promise<ListReply> {
    const found = [...this.server.items.values()]
      .filter(({ key }) => (tenant === null || key.tenant === tenant) && key.name.startsWith(prefix))
      .filter(({ key }) => after === null || compare(key, after) > 0)
      .sort((a, b) => compare(a.key, b.key));
    const items = found.slice(0, limit);
    return { ...this.reply(), items, next: found.length > limit ? items.at(-1)!.key : null };
  }

  async close(): Promise<void> {
    this.closed += 1;
  }

  async #write(
    key: LeaseKey,
    expected: string | null,
    value: StoredValue | null,
    signal: AbortSignal,
  ): Promise<ConditionalReply> {
    await this.beforeWrite(signal);
    const current = this.server.items.get(keyId(key)) ?? null;
    if ((current?.version ?? null) !== expected) return { ...this.reply(), kind: "conflict" };
    this.server.write(key, value);
    await this.afterWrite();
    return { ...this.reply(), kind: "done", ...(value !== null && { version: value.version }) };
  }
}

/** With a change feed, and a clock that needs no call. */
export class PushingBackend extends MapBackend {
  now(): number {
    return performance.now();
  }

  async changes(_scope: WatchScope, listener: WatchListener): Promise<{ close(): Promise<void> }> {
    this.server.listeners.add(listener);
    return { close: async () => void this.server.listeners.delete(listener) };
  }
}

function compare(a: LeaseKey, b: LeaseKey): number {
  if (a.tenant !== b.tenant) return a.tenant < b.tenant ? -1 : 1;
  return a.name === b.name ? 0 : a.name < b.name ? -1 : 1;
}
