/**
 * Every client and every key that occurs, once each and with a number, so that a state is a few numbers.
 * What becomes of a part when a tick passes or names are exchanged is worked out once.
 */
import type { LeaseState } from "solehold/internal";
import {
  type Attempt,
  type Client,
  type ExploreState,
  type KeyState,
  MARKS,
  OPERATIONS,
  type SmallRecord,
} from "./state.ts";

/** Names of clients and keys, exchanged: what stands at position i of the text is that of `order[i]`. */
interface Renaming {
  readonly clients: readonly number[];
  readonly keys: readonly number[];
  readonly clientNames: readonly number[];
  readonly keyNames: readonly number[];
}

interface Entry<Part> {
  readonly part: Part;
  /** Under each exchange of names, a number that equal texts share. */
  readonly names: readonly number[];
}

class Parts<Part extends { readonly id: number }> {
  readonly #renamings: readonly Renaming[];
  readonly #push: (part: Part, renaming: Renaming) => void;
  readonly #entries: Entry<Part>[] = [];
  readonly #byText = new Map<string, Part>();
  readonly #numbers = new Map<string, number>();

  constructor(renamings: readonly Renaming[], push: (part: Part, renaming: Renaming) => void) {
    this.#renamings = renamings;
    this.#push = push;
  }

  has(part: Part): boolean {
    return this.#entries[part.id]?.part === part;
  }

  add(part: Part): Part {
    if (this.has(part)) return part;
    const text = this.#text(part, this.#renamings[0] as Renaming);
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const added = { ...part, id: this.#entries.length };
    this.#byText.set(text, added);
    const names = this.#renamings.map((renaming) => this.#number(this.#text(part, renaming)));
    this.#entries.push({ part: added, names });
    return added;
  }

  name(id: number, renaming: number): number {
    return this.#entries[id]?.names[renaming] ?? 0;
  }

  #number(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.#numbers.size);
    return this.#numbers.size - 1;
  }

  #text(part: Part, renaming: Renaming): string {
    codes.length = 0;
    this.#push(part, renaming);
    return String.fromCharCode.apply(null, codes);
  }
}

export class Catalogue {
  readonly clients: Parts<Client>;
  readonly keys: Parts<KeyState>;
  readonly #renamings: readonly Renaming[];

  constructor(clients: number, keys: number) {
    this.#renamings = renamings(clients, keys);
    this.clients = new Parts(this.#renamings, pushClient);
    this.keys = new Parts(this.#renamings, pushKey);
  }

  /** The same text for states that differ only in names: that of the exchange which comes first. */
  textOf(state: ExploreState): string {
    let first = 0;
    for (let index = 1; index < this.#renamings.length; index += 1)
      if (this.#precedes(state, index, first)) first = index;
    const { clients, keys } = this.#renamings[first] as Renaming;
    let text = "";
    for (const position of keys) text += twoLetters(this.#keyName(state, position, first));
    for (const position of clients) text += twoLetters(this.#clientName(state, position, first));
    return text;
  }

  #precedes(state: ExploreState, one: number, other: number): boolean {
    const [a, b] = [this.#renamings[one] as Renaming, this.#renamings[other] as Renaming];
    for (let index = 0; index < a.keys.length; index += 1) {
      const difference =
        this.#keyName(state, a.keys[index] ?? 0, one) - this.#keyName(state, b.keys[index] ?? 0, other);
      if (difference !== 0) return difference < 0;
    }
    for (let index = 0; index < a.clients.length; index += 1) {
      const difference =
        this.#clientName(state, a.clients[index] ?? 0, one) -
        this.#clientName(state, b.clients[index] ?? 0, other);
      if (difference !== 0) return difference < 0;
    }
    return false;
  }

  #keyName(state: ExploreState, position: number, renaming: number): number {
    return this.keys.name(state.keys[position]?.id ?? 0, renaming);
  }

  #clientName(state: ExploreState, position: number, renaming: number): number {
    return this.clients.name(state.clients[position]?.id ?? 0, renaming);
  }
}

const LETTERS = 4_096;

function twoLetters(number: number): string {
  return String.fromCharCode(Math.floor(number / LETTERS), number % LETTERS);
}

function renamings(clients: number, keys: number): readonly Renaming[] {
  const names = (order: readonly number[]) => order.map((_, position) => order.indexOf(position));
  return permutations(clients)
    .flatMap((each) => permutations(keys).map((other) => ({ clients: each, keys: other })))
    .map((orders) => ({ ...orders, clientNames: names(orders.clients), keyNames: names(orders.keys) }));
}

function permutations(length: number): readonly (readonly number[])[] {
  if (length === 0) return [[]];
  return permutations(length - 1).flatMap((shorter) =>
    Array.from({ length }, (_, at) => [...shorter.slice(0, at), length - 1, ...shorter.slice(at)]),
  );
}

/** Every number of a state is far below this in size. */
const OFFSET = 40;
const ABSENT = 1;
const STATE_CODES: Readonly<Record<LeaseState, number>> = { held: 1, released: 2, revoked: 3 };
const codes: number[] = [];

function pushKey({ floor, highest, newest, closed, record }: KeyState, { clientNames }: Renaming): void {
  codes.push(floor + OFFSET, highest + OFFSET, newest + OFFSET, closed + OFFSET);
  pushRecord(record, clientNames);
}

function pushClient(client: Client, renaming: Renaming): void {
  const { clientNames, keyNames } = renaming;
  codes.push(client.lag + OFFSET);
  for (const position of renaming.keys) {
    const belief = client.beliefs[position];
    if (belief === null || belief === undefined) codes.push(ABSENT);
    else codes.push(belief.generation + OFFSET, belief.mark, belief.end + OFFSET);
  }
  pushAttempt(client.current, clientNames, keyNames);
  pushAttempt(client.late, clientNames, keyNames);
  if (client.guarded === null) codes.push(ABSENT);
  else codes.push((keyNames[client.guarded.key] ?? 0) + OFFSET, client.guarded.generation);
}

function pushRecord(record: SmallRecord | null, names: readonly number[]): void {
  if (record === null) {
    codes.push(ABSENT);
    return;
  }
  codes.push(record.generation + OFFSET, names[record.holder] ?? 0, record.mark, STATE_CODES[record.state]);
  codes.push(record.expires + OFFSET, record.breakAt === null ? ABSENT : record.breakAt + OFFSET);
  codes.push(record.minHold === null ? ABSENT : record.minHold + OFFSET);
  if (record.successor === null) codes.push(ABSENT);
  else codes.push((names[record.successor] ?? 0) + OFFSET, record.deadline + OFFSET);
  pushNonce(record.nonce, names);
}

function pushNonce(nonce: number | null, names: readonly number[]): void {
  if (nonce === null) codes.push(ABSENT);
  else codes.push((names[Math.floor(nonce / MARKS)] ?? 0) + OFFSET, nonce % MARKS);
}

function pushAttempt(attempt: Attempt | null, names: readonly number[], keyNames: readonly number[]): void {
  if (attempt === null) {
    codes.push(ABSENT);
    return;
  }
  const { op, key, phase, expects, next, generation, mark, nonce, sentAt, validFor } = attempt;
  codes.push(OPERATIONS.indexOf(op) + OFFSET, keyNames[key] ?? 0, phase === "request" ? 1 : 2);
  codes.push(expects === "absence" ? 1 : 2, generation, mark, sentAt + OFFSET, validFor + OFFSET);
  pushNonce(nonce, names);
  pushRecord(next, names);
}

const OWN_NAMES = Array.from({ length: 9 }, (_, index) => index);

/** The text of one record, for tables of answers about it. */
export function recordKey(record: SmallRecord | null): string {
  codes.length = 0;
  pushRecord(record, OWN_NAMES);
  return String.fromCharCode.apply(null, codes);
}
