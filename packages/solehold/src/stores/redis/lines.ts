/**
 * Lines of clients that wait for a key, first come, first served. Who releases the key tells the first in line, and
 * nobody else: a crowd of any size costs one message and no attempt in vain. Who was told is out of the line, and for a
 * moment newcomers leave the key to it.
 *
 * The line is a convenience and decides nothing. Who is told has to try like everybody, and may lose to a newcomer: then
 * it enters again at the place that it had. A line may vanish, a message be lost, somebody who was told do nothing: so
 * all who wait look now and then. Keys that are freed together with others, in one call, are told to all.
 *
 * A client has one place in a line, however many wait behind it.
 */
import { keyId, type LeaseKey } from "../../core/index.ts";
import { type Env, randomId } from "../../env/index.ts";
import type { StoredRecord, StoreEvent, StorePlace } from "../../store/index.ts";
import { announcedIn, ENDED, holdingEvent, type ShownRecord, TURN } from "./announcement.ts";
import type { RedisDataSet } from "./data-set.ts";
import type { RedisDriver } from "./driver.ts";
import { ENTER, leavingScript } from "./line-scripts.ts";
import { storedFrom } from "./records.ts";
import type { RedisScript } from "./scripts.ts";
import { LastingSubscription } from "./subscription.ts";

export interface LinesOptions {
  readonly env: Env;
  readonly driver: RedisDriver;
  readonly data: RedisDataSet;
  readonly timeoutMs: number;
  readonly shown: ShownRecord;
}

type Listener = (event: StoreEvent) => void;

/** Who waits looks at least this often by entering again, many times over. */
const KEPT_MS = "60000";

export class RedisLines {
  readonly #options: LinesOptions;
  readonly #client: string;
  readonly #leaving: RedisScript;
  readonly #places = new Map<string, Set<Place>>();
  readonly #subscription: LastingSubscription;

  constructor(options: LinesOptions) {
    const { env, data, driver } = options;
    this.#options = options;
    this.#client = randomId(env);
    this.#leaving = leavingScript(data.layout, driver.topology);
    this.#subscription = new LastingSubscription({
      ...options,
      channels: [data.layout.turnChannel(this.#client), data.layout.freedChannel],
      onMessage: (message) => this.#hear(message),
      onGap: () => this.reset(),
    });
  }

  /** Resolves once it would be told of its turn. */
  async stand(key: LeaseKey, listener: Listener): Promise<StorePlace> {
    await this.#subscription.ready();
    const id = keyId(key);
    const places = this.#places.get(id) ?? new Set();
    this.#places.set(id, places);
    const place = new Place(key, listener, {
      ...this.#options,
      client: this.#client,
      leaving: this.#leaving,
    });
    places.add(place);
    const close = async (): Promise<void> => {
      place.leave("gone");
      places.delete(place);
      if (places.size === 0 && this.#places.get(id) === places) this.#places.delete(id);
    };
    return { enter: () => place.enter(), leave: (why) => place.leave(why), close };
  }

  /** Turns may have been missed. */
  reset(): void {
    const all = [...this.#places.values()].flatMap((places) => [...places]);
    this.#options.env.defer(() => {
      for (const place of all) place.tell({ kind: "reset" }, "out");
    });
  }

  close(): void {
    this.#places.clear();
    this.#subscription.close();
  }

  #hear(message: string): void {
    const { data, shown } = this.#options;
    for (const announced of announcedIn(message, data.layout)) {
      const { key, letter } = announced;
      if (letter !== TURN && letter !== ENDED) continue;
      const event = holdingEvent(announced, shown);
      for (const place of this.#places.get(keyId(key)) ?? []) {
        if (letter === TURN) place.tellTurn(event, announced.value);
        else place.tell(event, "in");
      }
    }
  }
}

interface PlaceOptions extends LinesOptions {
  readonly client: string;
  readonly leaving: RedisScript;
}

/** Of one who waits for a key here. */
class Place {
  readonly #key: LeaseKey;
  readonly #listener: Listener;
  readonly #options: PlaceOptions;
  /** "told": out of the line, because it was its turn. */
  #state: "out" | "in" | "told" = "out";
  /** Where in the line it is, or was until it was told; empty for nowhere. */
  #position = "";
  /** What stood there when it was told last: it has tried for that, and need not hear of it again. */
  #toldOf: string | null = null;

  constructor(key: LeaseKey, listener: Listener, options: PlaceOptions) {
    this.#key = key;
    this.#listener = listener;
    this.#options = options;
  }

  tell(event: StoreEvent, state: "out" | "in" | "told"): void {
    if (this.#state !== "out" || event.kind === "reset") {
      this.#state = state;
      this.#listener(event);
    } else if (state === "told") {
      // It left just when its turn came.
      this.#send("pass");
    }
  }

  tellTurn(event: StoreEvent, value: string | null): void {
    this.#toldOf = value;
    this.tell(event, "told");
  }

  async enter(): Promise<void> {
    const { data, client } = this.#options;
    const { layout } = data;
    this.#state = "in";
    const keys = [layout.lineKey(this.#key), layout.recordKey(this.#key)];
    const args = [client, this.#position, KEPT_MS];
    const { items, storeTimeMs } = await data.run(ENTER, keys, args, "not-applied");
    const [position, value, isPending] = items;
    if (this.#isOut()) return this.#send("pass");
    this.#position = String(position);
    const stored = storedFrom(this.#key, value, data.lineage, storeTimeMs);
    const text = typeof value === "string" ? value : "";
    if (isPending === 1 || text === this.#toldOf) return;
    if (stored?.kind === "found" && stored.record.state === "held") return;
    // Nobody holds it, and nobody was told: so nobody will tell.
    this.#send("claim");
    this.tellTurn(freed(this.#key, stored), text);
  }

  leave(why: "served" | "gone"): void {
    if (this.#state === "in" || (this.#state === "told" && why === "gone"))
      this.#send(why === "gone" ? "pass" : "keep");
    this.#state = "out";
    this.#position = "";
  }

  #isOut(): boolean {
    return this.#state === "out";
  }

  /** If it fails, whoever is next finds out by looking. */
  #send(then: "pass" | "claim" | "keep"): void {
    const { data, client, leaving } = this.#options;
    const keys = [data.layout.lineKey(this.#key), data.layout.recordKey(this.#key)];
    data.run(leaving, keys, [client, then], "not-applied").catch(() => undefined);
  }
}

function freed(key: LeaseKey, stored: StoredRecord | null): StoreEvent {
  return { kind: "changed", key, record: null, held: "no", stored: () => stored };
}
