/**
 * Everything that can happen next: the clocks move, a client asks, a message arrives, is lost or comes late,
 * a client crashes, an ended record is collected. A client reads and decides in one step: on a snapshot that
 * has gone stale it would send a write that fails.
 */
import type { Answer, Knowledge } from "./brain.ts";
import { type Ageing, type Draft, draftOf, reduced, type Setting } from "./reduce.ts";
import {
  type Attempt,
  type Client,
  type ExploreState,
  type KeyState,
  MARKS,
  type Operation,
} from "./state.ts";

/** What happened is put into words only when somebody wants to read it. */
export type Visit = (action: () => string, state: ExploreState, broken: string | null) => void;

export function steps(state: ExploreState, setting: Setting, ageing: Ageing, visit: Visit): void {
  tick(state, setting, ageing, visit);
  state.clients.forEach((client, index) => {
    if (client.current === null) sends(state, index, client, setting, visit);
    else arrives(state, index, client, client.current, setting, visit);
    if (client.late !== null) arrivesLate(state, index, client, client.late, setting, visit);
    if (setting.world.guarded === "yes") guardedWrite(state, index, client, setting, visit);
    crashes(state, index, client, setting, visit);
  });
  state.keys.forEach((_, index) => {
    collects(state, index, setting, visit);
  });
}

/** The store's clock moves by one; every client's by nothing, one or two, as far as the bound allows. */
function tick(state: ExploreState, setting: Setting, ageing: Ageing, visit: Visit): void {
  const keys = state.keys.map((key) => ageing.key(key));
  let variants: Client[][] = [[]];
  for (const client of state.clients) {
    const aged = ageing.client(client);
    variants = variants.flatMap((before) => aged.map((each) => [...before, each]));
  }
  for (const clients of variants) {
    const lags = (): string => clients.map(({ lag }) => lag).join(", ");
    const next = reduced({ keys: keys.slice(), clients }, setting);
    visit(() => `a tick (clocks are off by ${lags()})`, next, null);
  }
}

/** The state with one client changed. */
function withClient(state: ExploreState, index: number, client: Client): Draft {
  const draft = draftOf(state);
  draft.clients[index] = client;
  return draft;
}

function sends(state: ExploreState, index: number, client: Client, setting: Setting, visit: Visit): void {
  const { operations, doubt, clients, keysAre } = setting.world;
  const hasSlot = keysAre === "slots" && client.beliefs.some((belief) => belief !== null);
  for (let key = 0; key < state.keys.length; key += 1) {
    const believing = client.beliefs[key] !== null;
    for (const op of operations) {
      const owners = op === "renew" || op === "release" || op === "handoff";
      if (op === "acquire" ? believing || hasSlot : owners && !believing) continue;
      const successors = op === "handoff" ? Array.from({ length: clients }, (_, each) => each) : [0];
      for (const successor of successors) {
        if (op === "handoff" && successor === index) continue;
        sendsOne(state, index, key, op, successor, "exact", setting, visit);
        if (doubt > 0) sendsOne(state, index, key, op, successor, "doubtful", setting, visit);
      }
    }
  }
}

function sendsOne(
  state: ExploreState,
  index: number,
  key: number,
  op: Operation,
  successor: number,
  knowledge: Knowledge,
  setting: Setting,
  visit: Visit,
): void {
  const keyState = state.keys[key];
  const client = state.clients[index];
  if (keyState === undefined || client === undefined) return;
  const { record, floor } = keyState;
  const mark = freeMark(state, index);
  const proof = client.beliefs[key]?.mark ?? null;
  const answer = setting.brain.ask({ op, client: index, mark, proof, successor, knowledge }, record, floor);
  if (answer === null) return;
  const ends = op === "release" || op === "handoff";
  // A holder stops before it says so.
  const beliefs =
    ends && setting.rules.stops === "before-saying"
      ? client.beliefs.map((belief, position) => (position === key ? null : belief))
      : client.beliefs;
  const current: Attempt = {
    op,
    key,
    phase: "request",
    expects: record === null ? "absence" : "version",
    next: answer.next,
    generation: answer.generation,
    // Whose token it is matters only to those who will use it.
    mark: op === "revoke" || op === "break" ? mark : answer.mark,
    nonce: index * MARKS + mark,
    sentAt: client.lag,
    validFor: answer.validFor,
  };
  const action = (): string => {
    const about = state.keys.length > 1 ? ` of key ${key}` : "";
    const to = op === "handoff" ? ` to c${successor}` : "";
    return `c${index} sends ${op}${about}${to}${knowledge === "exact" ? "" : ", unsure of the time"}`;
  };
  const draft = withClient(state, index, { ...client, beliefs, current });
  visit(action, reduced(draft, setting), wrongAnswer(state, index, key, op, answer, setting.world.lockDelay));
}

/** Promises that are broken by the very decision. */
function wrongAnswer(
  state: ExploreState,
  index: number,
  key: number,
  op: Operation,
  answer: Answer,
  lockDelay: number,
): string | null {
  const record = state.keys[key]?.record ?? null;
  if (record === null) return null;
  if (op === "renew" && (record.state !== "held" || record.expires <= 0)) return "no-resurrection";
  const reserved = record.successor !== null && record.deadline > 0 && record.successor !== index;
  if (op === "acquire" && record.state === "released" && reserved) return "reservations";
  const isDelayed = record.state === "held" && record.expires <= 0 && record.expires + lockDelay > 0;
  if (op === "acquire" && isDelayed) return "closed-periods";
  const limit = record.breakAt === null ? null : Math.max(record.breakAt, record.expires);
  const outran = limit !== null && answer.next !== null && answer.next.expires > limit;
  return op === "renew" && outran ? "reservations" : null;
}

/** A mark that no attempt or record of this client bears. */
function freeMark(state: ExploreState, index: number): number {
  const used = new Set<number>();
  const own = (nonce: number | null | undefined): void => {
    if (nonce !== null && nonce !== undefined && Math.floor(nonce / MARKS) === index) used.add(nonce % MARKS);
  };
  const late = state.clients[index]?.late;
  own(late?.nonce);
  if (late?.op === "acquire") used.add(late.mark);
  for (const { record } of state.keys) {
    own(record?.nonce);
    if (record?.holder === index) used.add(record.mark);
  }
  for (let mark = 0; mark < MARKS; mark += 1) if (!used.has(mark)) return mark;
  throw new Error("all marks of a client are in use: raise MARKS");
}

function arrives(
  state: ExploreState,
  index: number,
  client: Client,
  current: Attempt,
  setting: Setting,
  visit: Visit,
): void {
  const { op } = current;
  const leg = current.phase === "request" ? "request" : "reply";
  const idle: Client = { ...client, current: null };
  visit(() => `c${index}'s ${op} ${leg} is lost`, reduced(withClient(state, index, idle), setting), null);
  const lateOnes = state.clients.filter(({ late }) => late !== null).length;
  if (client.late === null && lateOnes < setting.world.late) {
    const draft = withClient(state, index, { ...idle, late: current });
    visit(() => `c${index} waits no longer for its ${op} ${leg}`, reduced(draft, setting), null);
  }
  if (current.phase === "written") {
    const draft = withClient(state, index, informed(idle, current, setting));
    visit(() => `c${index} hears that its ${op} was applied`, reduced(draft, setting), null);
  } else applies(state, index, "current", current, setting, visit);
}

function arrivesLate(
  state: ExploreState,
  index: number,
  client: Client,
  late: Attempt,
  setting: Setting,
  visit: Visit,
): void {
  const idle: Client = { ...client, late: null };
  visit(() => `c${index}'s late ${late.op} is lost`, reduced(withClient(state, index, idle), setting), null);
  if (late.phase === "request") applies(state, index, "late", late, setting, visit);
  else if (client.current === null) {
    const draft = withClient(state, index, informed(idle, late, setting));
    visit(() => `c${index} reads, and finds that its ${late.op} was applied`, reduced(draft, setting), null);
  }
}

/** The store writes, if what was expected still stands. */
function applies(
  state: ExploreState,
  index: number,
  slot: "current" | "late",
  attempt: Attempt,
  setting: Setting,
  visit: Visit,
): void {
  const { op, key, next } = attempt;
  const before = state.keys[key];
  const client = state.clients[index];
  if (before === undefined || client === undefined) return;
  const blind = setting.rules.writes === "blind";
  if (!blind && attempt.expects === "absence" && before.record !== null) return;
  const written: Attempt = { ...attempt, phase: "written", expects: "version", next: null };
  const draft = withClient(state, index, { ...client, [slot]: written });
  const highest = Math.max(before.highest, next?.generation ?? 0);
  draft.keys[key] = { ...before, record: next, highest, closed: closedBy(attempt, before, setting) };
  if (!blind) overtake(draft, key, setting);
  const action = (): string => `c${index}'s ${slot === "late" ? "late " : ""}${op} is applied`;
  visit(action, reduced(draft, setting), wrongWrite(attempt, before));
}

/** A grant closes the key from when it was decided on; a revoke opens it, and a handoff leaves it to the successor. */
function closedBy({ op, sentAt }: Attempt, { closed }: KeyState, { world }: Setting): number {
  if (op === "revoke" || op === "handoff") return 0;
  return op === "acquire" ? Math.max(0, world.holdAtLeast - world.lag + sentAt) : closed;
}

function wrongWrite(
  { op, next, generation }: Attempt,
  { record: before, highest, closed }: KeyState,
): string | null {
  if (next === null) return null;
  if (op === "acquire" && closed > 0) return "closed-periods";
  if (op === "acquire" && generation <= highest) return "fences-grow";
  if (generation < highest) return "fences-grow";
  const own = before !== null && before.holder === next.holder && before.generation === generation;
  return op !== "acquire" && !own ? "ownership" : null;
}

/**
 * Requests that expected what was just replaced can only fail now. That goes for an absence too, as long as
 * nobody brings it back too early.
 */
function overtake({ clients }: Draft, key: number, { rules }: Setting): void {
  const absencesReturn = rules.collects === "at-once" || rules.policy.release === "delete";
  const overtaken = (attempt: Attempt | null): boolean =>
    attempt !== null &&
    attempt.key === key &&
    attempt.phase === "request" &&
    (attempt.expects === "version" || !absencesReturn);
  clients.forEach((client, index) => {
    const [current, late] = [overtaken(client.current), overtaken(client.late)];
    if (!current && !late) return;
    // Who cannot tell attempts apart takes whatever it finds for its own.
    const mistaken = client.late !== null && rules.nonces === "constant";
    const left: Attempt | null = mistaken ? { ...client.late, phase: "written", next: null } : null;
    clients[index] = { ...client, current: current ? null : client.current, late: late ? left : client.late };
  });
}

/** A grant is believed from before it was asked for; a renewal prolongs what is still believed. */
function informed(client: Client, attempt: Attempt, { rules, brain }: Setting): Client {
  const { op, key, generation, mark, sentAt, validFor } = attempt;
  const known = client.beliefs[key] ?? null;
  if (op !== "acquire" && (op !== "renew" || known === null)) return client;
  const end = brain.endOf(rules.beliefFrom === "request" ? sentAt : client.lag, validFor);
  const later = known !== null && known.generation === generation ? Math.max(known.end, end) : end;
  const belief = { generation, mark, end: later };
  return { ...client, beliefs: client.beliefs.map((each, position) => (position === key ? belief : each)) };
}

/** A holder writes to what its lease protects; the write may arrive long after. */
function guardedWrite(
  state: ExploreState,
  index: number,
  client: Client,
  setting: Setting,
  visit: Visit,
): void {
  const { guarded } = client;
  if (guarded === null) {
    client.beliefs.forEach((belief, key) => {
      if (belief === null) return;
      const draft = withClient(state, index, { ...client, guarded: { key, generation: belief.generation } });
      visit(() => `c${index} writes to the resource`, reduced(draft, setting), null);
    });
    return;
  }
  const key = state.keys[guarded.key];
  if (key === undefined) return;
  const { newest } = key;
  const draft = withClient(state, index, { ...client, guarded: null });
  const accepted = setting.brain.accepts(newest, guarded.generation);
  if (accepted) draft.keys[guarded.key] = { ...key, newest: Math.max(newest, guarded.generation) };
  visit(
    () => `the resource ${accepted ? "takes" : "refuses"} c${index}'s write`,
    reduced(draft, setting),
    accepted && guarded.generation < newest ? "guarded-writes" : null,
  );
}

/**
 * It forgets all it knew; a request that it no longer waits for may still arrive. (That it might then
 * recognise it is more than a crashed client can do, and breaks no promise.)
 */
function crashes(state: ExploreState, index: number, client: Client, setting: Setting, visit: Visit): void {
  if (client.current === null && client.beliefs.every((belief) => belief === null)) return;
  const late = client.late?.phase === "written" ? null : client.late;
  const crashed: Client = { ...client, beliefs: client.beliefs.map(() => null), current: null, late };
  visit(() => `c${index} crashes and forgets`, reduced(withClient(state, index, crashed), setting), null);
}

/** An ended record goes once its generation is below the floor. */
function collects(state: ExploreState, index: number, setting: Setting, visit: Visit): void {
  const key = state.keys[index];
  if (key === undefined || key.record === null || !setting.brain.hasEnded(key.record)) return;
  const { rules } = setting;
  const draft = draftOf(state);
  const floor = rules.collects === "without-floor" ? key.floor : Math.max(key.floor, key.record.generation);
  draft.keys[index] = { ...key, record: null, floor };
  if (rules.writes === "conditional") overtake(draft, index, setting);
  visit(() => `the record of key ${index} is collected`, reduced(draft, setting), null);
}
