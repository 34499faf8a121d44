/**
 * What this process writes beside its records, in the same transaction: its line with the time and a
 * sequence number, and while somebody else watches, the keys that changed. Its own watchers it tells itself.
 *
 * The journal is a ring: entry N of a member lies at N modulo its size, and says that it is N. Without
 * watchers a transaction only raises the sequence number, so a watcher that came while it was under way,
 * or that fell behind by a whole ring, finds a number without its entry, and knows that it missed something.
 */
import { keyId, type LeaseKey } from "../../core/index.ts";
import { type Env, randomId } from "../../env/index.ts";
import type { StoreClock } from "./clock.ts";
import type { Databases } from "./database.ts";
import { LineBytes } from "./member-line.ts";
import { memberKey } from "./state.ts";

const RING_ENTRIES = 1_024;
const ENTRY_CHARACTERS = 16_384;
/** Who watches: a line for each, with until when its sign of life counts. */
const WATCHERS_KEY = "watchers";

/** How long a sign of life of a watcher counts, and how often it gives one. */
const WATCHED_MS = 30_000;
export const WATCH_RENEWAL_MS = 10_000;
/**
 * For how long a look at the list of watchers counts. A look costs a tenth of a small commit, so not every commit has one:
 * who begins to watch looks for itself what was written in this time, see follower.ts.
 */
export const LOOK_MS = 5;

export class Journal {
  readonly memberId: string;
  readonly #databases: Databases;
  readonly #clock: StoreClock;
  readonly #env: Env;
  /** "m/<id>": as text and as bytes the same key. */
  readonly #lineKey: Uint8Array;
  readonly #lines = new LineBytes();
  #sequence = 0;
  #pending: (readonly LeaseKey[])[] = [];
  /** The lines as they were last seen, and what they said; null when they could not be read. */
  #watchers: string | null = null;
  #othersUntilMs = 0;
  #lookAgainAtMs = Number.NEGATIVE_INFINITY;

  constructor(databases: Databases, clock: StoreClock, env: Env) {
    this.memberId = randomId(env);
    this.#lineKey = Buffer.from(memberKey(this.memberId));
    this.#databases = databases;
    this.#clock = clock;
    this.#env = env;
    databases.root.on("beforecommit", () => this.#enter());
  }

  /** To be written with the transaction that is being queued. */
  note(keys: readonly LeaseKey[]): void {
    this.#pending.push(keys);
  }

  /** By another. When it cannot be known, it is better to keep a journal in vain. */
  isWatched(): boolean {
    const nowMs = this.#env.monotonicMs();
    if (nowMs >= this.#lookAgainAtMs) {
      this.#look();
      this.#lookAgainAtMs = nowMs + LOOK_MS;
    }
    return this.#othersUntilMs > this.#clock.now();
  }

  #look(): void {
    try {
      this.#databases.root.resetReadTxn();
      const watchers = this.#databases.meta.get(WATCHERS_KEY) ?? "";
      if (watchers === this.#watchers) return;
      const others = watchersIn(watchers).filter(({ memberId }) => memberId !== this.memberId);
      this.#othersUntilMs = Math.max(0, ...others.map(({ untilMs }) => untilMs));
      this.#watchers = watchers;
    } catch {
      this.#othersUntilMs = Number.POSITIVE_INFINITY;
      this.#watchers = null;
    }
  }

  /** Queued last, so that the time is not before that at which any of the writes was handed over. */
  #enter(): void {
    if (this.#pending.length === 0) return;
    const keys = this.#pending;
    this.#pending = [];
    if (this.isWatched()) for (const entry of packed(keys.flat().map(keyId))) this.#append(entry);
    else this.#sequence += 1;
    const line = this.#lines.encode(this.#clock.epoch, this.#clock.now(), this.#sequence);
    ignoreFailure(this.#databases.lines.put(this.#lineKey, line));
  }

  #append(entry: string): void {
    this.#sequence += 1;
    const key = entryKey(this.memberId, this.#sequence);
    ignoreFailure(this.#databases.changes.put(key, `${this.#sequence}\n${entry}`));
  }
}

/** The transaction's failure reaches its caller through the records' own writes. */
function ignoreFailure(write: Promise<boolean>): void {
  write.catch(ignore);
}

function ignore(): void {}

function entryKey(memberId: string, sequence: number): string {
  return `${memberId}/${sequence % RING_ENTRIES}`;
}

/** No name contains a line break. */
function packed(ids: readonly string[]): string[] {
  const entries: string[] = [];
  let entry = "";
  for (const id of ids) {
    if (entry.length > ENTRY_CHARACTERS) {
      entries.push(entry);
      entry = "";
    }
    entry += entry === "" ? id : `\n${id}`;
  }
  return [...entries, entry];
}

/** The keys of one entry; null when it was not written or is overwritten by now. */
export function readEntry({ changes }: Databases, memberId: string, sequence: number): string[] | null {
  const [number, ...ids] = changes.get(entryKey(memberId, sequence))?.split("\n") ?? [];
  return number === String(sequence) ? ids : null;
}

interface Watching {
  readonly memberId: string;
  readonly untilMs: number;
}

function watchersIn(text: string): readonly Watching[] {
  return text.split("\n").flatMap((line) => {
    const [memberId = "", until = ""] = line.split(" ");
    const untilMs = Number(until);
    return memberId === "" || Number.isNaN(untilMs) ? [] : [{ memberId, untilMs }];
  });
}

/**
 * A watcher's sign of life, among those of the others: whoever ends, killed or not, is out of the list when the
 * next one gives its own.
 */
export async function announceWatcher(
  { root, meta, gate }: Databases,
  clock: StoreClock,
  memberId: string,
): Promise<void> {
  const tryOnce = async (): Promise<boolean> => {
    root.resetReadTxn();
    const entry = meta.getEntry(WATCHERS_KEY);
    const version = entry?.version ?? null;
    const nowMs = clock.now();
    const others = watchersIn(entry?.value ?? "").filter((watching) => {
      return watching.memberId !== memberId && watching.untilMs > nowMs;
    });
    const lines = [...others, { memberId, untilMs: nowMs + WATCHED_MS }];
    const text = lines.map((watching) => `${watching.memberId} ${watching.untilMs}`).join("\n");
    // LMDB takes null for "must be absent", which its types do not know.
    return await meta.put(WATCHERS_KEY, text, (version ?? 0) + 1, version as unknown as number);
  };
  while (!(await gate.through(tryOnce)));
}
