/**
 * Follows what other processes write: after a ring of the bell, and every now and then in case a ring was
 * lost, it reads the members' lines and the journal entries that are new. A sequence number without its
 * entry is a gap. Its sign of life in the store makes the others keep a journal and ring.
 */
import { type Env, jittered, type Timer } from "../../env/index.ts";
import type { Bell } from "./bell.ts";
import type { StoreClock } from "./clock.ts";
import type { Databases } from "./database.ts";
import { announceWatcher, LOOK_MS, readEntry, WATCH_RENEWAL_MS } from "./journal.ts";
import { readMembers } from "./state.ts";

/** With a bell, for rings that got lost with their process. Without one, this is how fast news travels. */
const POLL_WITH_BELL_MS = 1_000;
const POLL_ALONE_MS = 50;
const JITTER_RATIO = 0.3;
/** By then everybody knows of a new watcher; timers may come a little early. */
const FIRST_LOOK_MS = LOOK_MS + 3;

export interface FollowerParts {
  readonly databases: Databases;
  readonly clock: StoreClock;
  readonly env: Env;
  readonly bell: Bell;
  /** Whose entries are not news. */
  readonly ownMemberId: string;
  readonly onChanged: (keyId: string) => void;
  readonly onGap: () => void;
}

export class Follower {
  readonly #parts: FollowerParts;
  /** Per member, the last entry that was looked at. */
  readonly #seen = new Map<string, number>();
  #timer: Timer | null = null;
  #stopListening: (() => void) | null = null;
  #renewAtMs = 0;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /**
   * Once this has resolved, every later commit is noticed: those of the next milliseconds, whose writers may not know yet
   * that somebody watches, by the first look.
   */
  async start(): Promise<void> {
    const { databases, clock, bell, ownMemberId } = this.#parts;
    await announceWatcher(databases, clock, ownMemberId);
    this.#renewAtMs = clock.now() + WATCH_RENEWAL_MS;
    databases.root.resetReadTxn();
    for (const { id, sequence } of readMembers(databases)) this.#seen.set(id, sequence);
    this.#stopListening = bell.listen(
      () => this.#look(),
      () => {
        this.#stopListening = null;
      },
    );
    this.#schedule(FIRST_LOOK_MS);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#stopListening?.();
    this.#stopListening = null;
    this.#seen.clear();
  }

  #schedule(delayMs: number): void {
    const { env } = this.#parts;
    this.#timer = env.timer(delayMs, () => {
      this.#look();
      this.#giveSignOfLife();
      const intervalMs = this.#stopListening === null ? POLL_ALONE_MS : POLL_WITH_BELL_MS;
      this.#schedule(jittered(env, intervalMs, JITTER_RATIO));
    });
  }

  /** If it fails, others stop ringing, and polling finds their gaps. */
  #giveSignOfLife(): void {
    const { databases, clock, ownMemberId } = this.#parts;
    if (clock.now() < this.#renewAtMs) return;
    this.#renewAtMs = clock.now() + WATCH_RENEWAL_MS;
    announceWatcher(databases, clock, ownMemberId).catch(() => undefined);
  }

  #look(): void {
    const { databases, ownMemberId, onChanged, onGap } = this.#parts;
    try {
      databases.root.resetReadTxn();
      for (const { id, sequence } of readMembers(databases)) {
        const changed = id === ownMemberId ? [] : this.#newsOf(id, sequence);
        if (changed === null) onGap();
        else for (const keyId of changed) onChanged(keyId);
      }
    } catch {
      onGap();
    }
  }

  /** The keys that changed since the last look; null when some of them are not known any more. */
  #newsOf(memberId: string, sequence: number): readonly string[] | null {
    const seen = this.#seen.get(memberId) ?? 0;
    if (seen === sequence) return [];
    this.#seen.set(memberId, sequence);
    const changed: string[] = [];
    for (let number = seen + 1; number <= sequence; number += 1) {
      const ids = readEntry(this.#parts.databases, memberId, number);
      if (ids === null) return null;
      changed.push(...ids);
    }
    return changed;
  }
}
