/**
 * The wait queue: clients that wait for a key, first come, first served. The script that releases the key wakes the
 * first, and nobody else: a queue of any length costs one message and no attempt in vain.
 *
 * The queue decides nothing. Whoever is woken has to try like everybody, and may lose to a newcomer: then it enters
 * again at the position that it had. A message may be lost, or somebody who was woken do nothing: so all who wait enter
 * again now and then. A client has one position in a queue, however many wait behind it.
 */
import { keyId, type LeaseKey } from "../../core/index.ts";
import type { QueueTicket, StoredRecord, WatchListener } from "../../store/index.ts";
import type { RedisData } from "./data.ts";
import { type ChangedEvent, eventOf, storedFrom } from "./layout.ts";
import { ENTER_QUEUE, LEAVE_QUEUE } from "./scripts.ts";
import type { RedisSubscriber } from "./subscriber.ts";

export class RedisQueues {
  readonly #data: RedisData;
  readonly #subscriber: RedisSubscriber;
  readonly #client: string;
  readonly #tickets = new Map<string, Set<Ticket>>();

  /** `client` is an id that no other client has. */
  constructor(data: RedisData, subscriber: RedisSubscriber, client: string) {
    this.#data = data;
    this.#subscriber = subscriber;
    this.#client = client;
  }

  /** Resolves once this client would be woken. */
  async join(key: LeaseKey, listener: WatchListener): Promise<QueueTicket> {
    await this.#subscriber.listen(this.#data.layout.turnChannel(this.#client), {
      onMessage: (message) => this.#onMessage(message),
      onGap: () => {
        for (const ticket of [...this.#tickets.values()].flatMap((each) => [...each])) ticket.reset();
      },
    });
    const id = keyId(key);
    const tickets = this.#tickets.get(id) ?? new Set();
    this.#tickets.set(id, tickets);
    const ticket = new Ticket(key, listener, this.#data, this.#client);
    tickets.add(ticket);
    const close = async (): Promise<void> => {
      ticket.leave("gone");
      tickets.delete(ticket);
      if (tickets.size === 0 && this.#tickets.get(id) === tickets) this.#tickets.delete(id);
    };
    return { enter: () => ticket.enter(), leave: (why) => ticket.leave(why), close };
  }

  close(): void {
    this.#tickets.clear();
  }

  #onMessage(message: string): void {
    const event = eventOf(message);
    if (event === null) return;
    for (const ticket of this.#tickets.get(keyId(event.key)) ?? []) ticket.wake(event);
  }
}

class Ticket {
  readonly #key: LeaseKey;
  readonly #listener: WatchListener;
  readonly #data: RedisData;
  readonly #client: string;
  /** "woken": out of the order, because it was its turn. */
  #state: "out" | "waiting" | "woken" = "out";
  /** Where in the queue it is, or was until it was woken; empty for nowhere. */
  #position = "";
  /** The version for which it was woken last: it has tried for that, and is not woken for it again. */
  #triedFor: string | null = null;

  constructor(key: LeaseKey, listener: WatchListener, data: RedisData, client: string) {
    this.#key = key;
    this.#listener = listener;
    this.#data = data;
    this.#client = client;
  }

  async enter(): Promise<void> {
    const { layout } = this.#data;
    this.#state = "waiting";
    const keys = [layout.queueKey(this.#key), layout.recordKey(this.#key)];
    const { items } = await this.#data.readAside(ENTER_QUEUE, keys, [this.#client, this.#position]);
    const [position, shown, somebodyWasWoken] = items;
    if (this.#isOut()) return this.#send("pass");
    this.#position = String(position);
    const stored = storedFrom(this.#key, shown);
    const isHeld = stored.kind === "found" && stored.record.state === "held";
    if (isHeld || somebodyWasWoken === 1 || versionIn(stored) === this.#triedFor) return;
    // Nobody holds it, and nobody was woken for it: so nobody will wake this one.
    this.#send("woken");
    this.wake({ kind: "changed", key: this.#key, stored });
  }

  wake(event: ChangedEvent): void {
    if (this.#isOut()) {
      // It left just when its turn came.
      this.#send("pass");
      return;
    }
    this.#triedFor = event.stored === null ? null : versionIn(event.stored);
    this.#state = "woken";
    this.#listener(event);
  }

  /** Its turn may have been missed. */
  reset(): void {
    this.#state = "out";
    this.#listener({ kind: "reset" });
  }

  leave(why: "served" | "gone"): void {
    if (this.#state === "waiting" || (this.#state === "woken" && why === "gone")) {
      this.#send(why === "gone" ? "pass" : "leave");
    }
    this.#state = "out";
    this.#position = "";
  }

  #isOut(): boolean {
    return this.#state === "out";
  }

  /** If it fails, whoever is next finds out by entering again. */
  #send(what: "pass" | "woken" | "leave"): void {
    const keys = [this.#data.layout.queueKey(this.#key)];
    this.#data.readAside(LEAVE_QUEUE, keys, [this.#client, what, keyId(this.#key)]).catch(() => undefined);
  }
}

function versionIn(stored: StoredRecord): string {
  return stored.kind === "absent" ? "" : stored.version;
}
