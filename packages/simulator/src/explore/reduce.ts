/**
 * Brings a state to the form that stands for all that behave alike: what can have no effect any more is
 * forgotten, instants far in the past are all the same past, and generations move together.
 *
 * A message that can only fail, or tell its sender what no longer matters, is dropped at once: its sender
 * may then do more than one that waits, never less.
 */
import type { Brain } from "./brain.ts";
import type { Catalogue } from "./catalogue.ts";
import { renumberedMarks } from "./marks.ts";
import type { ExploreRules, ExploreWorld } from "./rules.ts";
import type { Attempt, Client, ExploreState, KeyState, SmallRecord } from "./state.ts";

/** A copy in the making: its members are replaced, never changed, so that states share what they can. */
export interface Draft {
  readonly keys: KeyState[];
  readonly clients: Client[];
}

export interface Setting {
  readonly world: ExploreWorld;
  readonly rules: ExploreRules;
  readonly brain: Brain;
  readonly catalogue: Catalogue;
}

export function draftOf(state: ExploreState): Draft {
  return { keys: state.keys.slice(), clients: state.clients.slice() };
}

export function reduced(draft: Draft, setting: Setting): ExploreState {
  const { keys, clients } = draft;
  const { catalogue } = setting;
  for (let index = 0; index < clients.length; index += 1) {
    const client = clients[index] as Client;
    const settled = catalogue.clients.has(client) ? client : settledClient(client, setting);
    clients[index] = isReplaced(settled.late, keys, setting) ? { ...settled, late: null } : settled;
  }
  for (let index = 0; index < keys.length; index += 1) {
    keys[index] = settledKey(keys[index] as KeyState, clients);
    moveGenerations(draft, index);
  }
  const settled = renumberedMarks(draft) ?? draft;
  return {
    keys: settled.keys.map((key) => catalogue.keys.add(key)),
    clients: settled.clients.map((client) => catalogue.clients.add(client)),
  };
}

function settledClient(client: Client, setting: Setting): Client {
  const { brain } = setting;
  let settled = client;
  for (const belief of client.beliefs) {
    if (belief === null || brain.isBelieved(belief.end, client.lag)) continue;
    const beliefs = client.beliefs.map((each) =>
      each !== null && brain.isBelieved(each.end, client.lag) ? each : null,
    );
    settled = { ...settled, beliefs };
    break;
  }
  if (isIdle(settled.current, settled, setting)) settled = { ...settled, current: null };
  if (isIdle(settled.late, settled, setting)) settled = { ...settled, late: null };
  return settled;
}

/** Written, and its sender will learn nothing from hearing so. */
function isIdle(attempt: Attempt | null, client: Client, { brain, rules }: Setting): boolean {
  if (attempt === null || attempt.phase === "request") return false;
  if (attempt.op === "renew" && client.beliefs[attempt.key] === null) return true;
  if (attempt.op !== "renew" && attempt.op !== "acquire") return true;
  if (rules.beliefFrom === "reply") return false;
  return !brain.isBelieved(brain.endOf(attempt.sentAt, attempt.validFor), client.lag);
}

/** A late write can be recognised only while its record stands, unless all look the same. */
function isReplaced(late: Attempt | null, keys: readonly KeyState[], { rules }: Setting): boolean {
  if (late === null || late.phase === "request") return false;
  const record = keys[late.key]?.record ?? null;
  return record === null || (rules.nonces === "unique" && record.nonce !== late.nonce);
}

/**
 * A record that stands above the floor hides it, and will raise it when it goes. Its nonce matters while
 * somebody could look for it.
 */
function settledKey(key: KeyState, clients: readonly Client[]): KeyState {
  const { record, floor } = key;
  if (record === null) return key;
  const hidden = floor !== 0 && record.generation >= floor;
  const { nonce } = record;
  const sought =
    nonce === null || clients.some(({ late, current }) => late?.nonce === nonce || current?.nonce === nonce);
  if (!hidden && sought) return key;
  return { ...key, floor: hidden ? 0 : floor, record: sought ? record : { ...record, nonce: null } };
}

/** Order and direct succession of generations are kept; how far the others lie apart is not. */
function moveGenerations(draft: Draft, index: number): void {
  const key = draft.keys[index];
  // Below two there is nothing to move.
  if (key === undefined || key.highest < 2) return;
  const present = [key.highest, key.floor, key.newest];
  if (key.record !== null) present.push(key.record.generation);
  for (const { beliefs, current, late, guarded } of draft.clients) {
    const belief = beliefs[index];
    if (belief !== null && belief !== undefined) present.push(belief.generation);
    if (current?.key === index) present.push(current.generation);
    if (late?.key === index) present.push(late.generation);
    if (guarded?.key === index) present.push(guarded.generation);
  }
  present.sort((a, b) => a - b);
  const moved: number[] = [];
  let [last, to] = [0, 0];
  for (const generation of present) {
    to += Math.min(generation - last, 2);
    last = generation;
    moved[generation] = to;
  }
  if (to !== last) renumber(draft, index, (generation) => moved[generation] ?? generation);
}

function renumber(draft: Draft, index: number, move: (generation: number) => number): void {
  draft.keys.forEach((key, position) => {
    if (position !== index) return;
    const { floor, highest, newest, record } = key;
    draft.keys[position] = {
      ...key,
      floor: move(floor),
      highest: move(highest),
      newest: move(newest),
      record: movedRecord(record, move),
    };
  });
  draft.clients.forEach((client, position) => {
    const { beliefs, current, late, guarded } = client;
    draft.clients[position] = {
      ...client,
      beliefs: beliefs.map((belief, key) =>
        belief === null || key !== index ? belief : { ...belief, generation: move(belief.generation) },
      ),
      current: current?.key === index ? movedAttempt(current, move) : current,
      late: late?.key === index ? movedAttempt(late, move) : late,
      guarded: guarded?.key === index ? { key: index, generation: move(guarded.generation) } : guarded,
    };
  });
}

function movedRecord(record: SmallRecord | null, move: (generation: number) => number): SmallRecord | null {
  return record === null ? null : { ...record, generation: move(record.generation) };
}

function movedAttempt(attempt: Attempt, move: (generation: number) => number): Attempt {
  return { ...attempt, generation: move(attempt.generation), next: movedRecord(attempt.next, move) };
}

/** What becomes of each part in a tick, by its number. */
export class Ageing {
  readonly #setting: Setting;
  readonly #keys: KeyState[] = [];
  readonly #clients: (readonly Client[])[] = [];

  constructor(setting: Setting) {
    this.#setting = setting;
  }

  /** Every instant lies one further back, as far as that makes a difference. */
  key(key: KeyState): KeyState {
    const known = this.#keys[key.id];
    if (known !== undefined) return known;
    const { catalogue, world } = this.#setting;
    const closed = Math.max(0, key.closed - 1);
    const aged = catalogue.keys.add({ ...key, closed, record: agedRecord(key.record, world) });
    this.#keys[key.id] = aged;
    return aged;
  }

  /** The same client one tick later, once for each time that its clock may then show. */
  client(client: Client): readonly Client[] {
    const known = this.#clients[client.id];
    if (known !== undefined) return known;
    const { catalogue, world } = this.#setting;
    const beliefs = client.beliefs.map((belief) =>
      belief === null ? null : { ...belief, end: belief.end - 1 },
    );
    const current = agedAttempt(client.current, world);
    const late = agedAttempt(client.late, world);
    const aged = [client.lag - 1, client.lag, client.lag + 1]
      .filter((lag) => Math.abs(lag) <= world.lag)
      .map((lag) => settledClient({ ...client, lag, beliefs, current, late }, this.#setting))
      .map((each) => catalogue.clients.add(each));
    this.#clients[client.id] = aged;
    return aged;
  }
}

function agedRecord(record: SmallRecord | null, { doubt, lockDelay }: ExploreWorld): SmallRecord | null {
  if (record === null) return null;
  const past = -doubt - lockDelay;
  const { expires, breakAt, minHold, deadline, successor } = record;
  if (expires === past && breakAt === null && minHold === null && successor === null) return record;
  const over = successor !== null && deadline - 1 <= past;
  return {
    ...record,
    expires: record.state === "released" ? past : Math.max(past, expires - 1),
    breakAt: breakAt === null ? null : Math.max(past, breakAt - 1),
    minHold: minHold === null || minHold - 1 <= -doubt ? null : minHold - 1,
    deadline: over || successor === null ? 0 : deadline - 1,
    successor: over ? null : successor,
  };
}

function agedAttempt(attempt: Attempt | null, world: ExploreWorld): Attempt | null {
  if (attempt === null) return null;
  const oldest = -Math.max(world.ttlTicks, world.holdAtLeast) - 2 * world.lag;
  const sentAt = Math.max(oldest, attempt.sentAt - 1);
  return { ...attempt, sentAt, next: agedRecord(attempt.next, world) };
}
