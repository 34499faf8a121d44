/**
 * A world small enough to walk through completely: one key, a few clients with clocks that lag and lead,
 * messages in flight that arrive late or never. Decisions and beliefs are the shipped functions; only the
 * messages and the ticks are made up here.
 */
import {
  type DriftBound,
  type decide,
  exactly,
  isStillValid,
  type LeaseCommand,
  type LeasePolicy,
  type LeaseRecord,
  type Validity,
  validityFrom,
} from "../../core/index.ts";

export interface ExploreLimits {
  readonly clients: number;
  /** The world ends after so many ticks. */
  readonly ticks: number;
  readonly ttlTicks: number;
  /** No further grant is asked for after so many: fences would grow for ever. */
  readonly grants: number;
  /** How far a client's clock may be ahead of or behind the store's. */
  readonly lag: number;
}

export interface ExploreRules {
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly decide: typeof decide;
  readonly writes: "conditional" | "blind";
  readonly beliefFrom: "request" | "reply";
}

export type Operation = "acquire" | "renew" | "release" | "revoke";

interface Message {
  readonly phase: "request" | "reply";
  readonly op: Operation;
  /** The client's clock before it was sent. */
  readonly sentAt: number;
  readonly validFor: number;
  readonly next: LeaseRecord | null;
  /** Whether the record is still the one that the decision was made on. */
  readonly fits: boolean;
}

interface Client {
  readonly lag: number;
  readonly belief: {
    readonly generation: bigint;
    readonly tokenHash: string;
    readonly validity: Validity;
  } | null;
  readonly message: Message | null;
}

export interface ExploreState {
  readonly now: number;
  readonly record: LeaseRecord | null;
  readonly highest: bigint;
  readonly clients: readonly Client[];
}

export interface Step {
  readonly action: string;
  readonly state: ExploreState;
  /** A promise that this very step broke. */
  readonly broken: string | null;
}

const KEY = { tenant: "default", name: "key" };
const START_MS = 1_000;

export function startState({ clients }: ExploreLimits): ExploreState {
  const client: Client = { lag: 0, belief: null, message: null };
  return { now: 0, record: null, highest: 0n, clients: Array.from({ length: clients }, () => client) };
}

export function stateKey({ now, record, highest, clients }: ExploreState): string {
  const stored = record === null ? "-" : recordKey(record);
  const parts = clients.map(({ lag, belief, message }) => {
    const believed = belief === null ? "-" : `${belief.generation}@${belief.validity.monotonicEndMs}`;
    const sent =
      message === null
        ? "-"
        : `${message.phase}${message.op}${message.sentAt}:${message.fits}:${message.next === null ? "-" : recordKey(message.next)}`;
    return `${lag}|${believed}|${sent}`;
  });
  return `${now};${highest};${stored};${parts.join(";")}`;
}

function recordKey(record: LeaseRecord): string {
  return `${record.holder}${record.generation}${record.state}${record.expiresAtMs}${record.tokenHash.slice(0, 4)}`;
}

/** Both clocks of a client show the same here. */
function clockOf(state: ExploreState, client: Client): number {
  return START_MS + state.now + client.lag;
}

export function believes(state: ExploreState, { belief, lag }: Client): boolean {
  if (belief === null) return false;
  const clock = START_MS + state.now + lag;
  return isStillValid(belief.validity, { monotonicMs: clock, wallMs: clock });
}

/** Everything that can happen next. */
export function* steps(state: ExploreState, limits: ExploreLimits, rules: ExploreRules): Generator<Step> {
  if (state.now < limits.ticks) yield* ticks(state, limits);
  for (let index = 0; index < state.clients.length; index += 1) {
    const client = state.clients[index];
    if (client === undefined) continue;
    if (client.message === null) yield* sends(state, index, client, limits, rules);
    else yield* deliveries(state, index, client, client.message, rules);
  }
}

/** The store's clock moves by one; every client's by nothing, one or two, as far as the bound allows. */
function* ticks(state: ExploreState, limits: ExploreLimits): Generator<Step> {
  let variants: (readonly Client[])[] = [[]];
  for (const client of state.clients) {
    const moves = [-1, 0, 1].map((move) => client.lag + move).filter((lag) => Math.abs(lag) <= limits.lag);
    variants = variants.flatMap((before) => moves.map((lag) => [...before, { ...client, lag }]));
  }
  for (const clients of variants) {
    const lags = clients.map(({ lag }) => lag).join(", ");
    yield {
      action: `tick to ${state.now + 1} (clocks off by ${lags})`,
      state: { ...state, now: state.now + 1, clients },
      broken: null,
    };
  }
}

function* sends(
  state: ExploreState,
  index: number,
  client: Client,
  limits: ExploreLimits,
  rules: ExploreRules,
): Generator<Step> {
  const operations: readonly Operation[] = believes(state, client)
    ? ["renew", "release"]
    : ["acquire", "revoke"];
  for (const op of operations) {
    if (op === "acquire" && state.highest >= BigInt(limits.grants)) continue;
    const command = commandOf(op, index, client, state, limits);
    const at = START_MS + state.now;
    const { decision, effect } = rules.decide(
      command,
      { record: state.record, floor: 0n },
      exactly(at),
      rules.policy,
    );
    // A holder stops before it says so.
    const stopped = op === "release" ? { ...client, belief: null } : client;
    if (decision.kind !== "granted" || effect.kind === "none") continue;
    const message: Message = {
      phase: "request",
      op,
      sentAt: clockOf(state, client),
      validFor: Math.max(0, decision.lease.expiresAtMs - at),
      next: effect.kind === "write" ? effect.record : null,
      fits: true,
    };
    const broken =
      op === "renew" && state.record !== null && at >= state.record.expiresAtMs ? "no-resurrection" : null;
    const clients = withClient(state.clients, index, { ...stopped, message });
    yield { action: `c${index} sends ${op}`, state: { ...state, clients }, broken };
  }
}

function* deliveries(
  state: ExploreState,
  index: number,
  client: Client,
  message: Message,
  rules: ExploreRules,
): Generator<Step> {
  const { op, phase, next } = message;
  const idle = withClient(state.clients, index, { ...client, message: null });
  yield { action: `c${index}'s ${op} ${phase} is lost`, state: { ...state, clients: idle }, broken: null };
  if (phase === "reply") {
    yield {
      action: `c${index} hears that its ${op} was applied`,
      state: heard(state, index, client, message, rules),
      broken: null,
    };
    return;
  }
  if (!message.fits && rules.writes === "conditional") {
    yield {
      action: `c${index}'s ${op} meets a newer record`,
      state: { ...state, clients: idle },
      broken: null,
    };
    return;
  }
  const outdated = state.clients.map((each) =>
    each.message === null ? each : { ...each, message: { ...each.message, fits: false } },
  );
  const clients = withClient(outdated, index, { ...client, message: { ...message, phase: "reply" } });
  const generation = next?.generation ?? 0n;
  const grew = generation > state.highest;
  const broken = op === "acquire" && !grew ? "fences-grow" : null;
  const highest = grew ? generation : state.highest;
  yield {
    action: `c${index}'s ${op} is applied`,
    state: { ...state, record: next, highest, clients },
    broken,
  };
}

function heard(
  state: ExploreState,
  index: number,
  client: Client,
  { op, sentAt, validFor, next }: Message,
  rules: ExploreRules,
): ExploreState {
  const idle: Client = { ...client, message: null };
  if (next === null || (op !== "acquire" && op !== "renew"))
    return { ...state, clients: withClient(state.clients, index, idle) };
  const from = rules.beliefFrom === "request" ? sentAt : clockOf(state, client);
  const validity = validityFrom({ monotonicMs: from, wallMs: from }, validFor, rules.drift);
  const belief = { generation: next.generation, tokenHash: next.tokenHash, validity };
  return { ...state, clients: withClient(state.clients, index, { ...idle, belief }) };
}

function commandOf(
  op: Operation,
  index: number,
  client: Client,
  state: ExploreState,
  limits: ExploreLimits,
): LeaseCommand {
  const nonce = "n";
  const holder = `c${index}`;
  const tokenHash = client.belief?.tokenHash ?? "";
  if (op === "acquire") {
    const fresh = `${index}${state.highest}:`.padEnd(43, "0");
    return { op, key: KEY, nonce, holder, purpose: "Operation", ttlMs: limits.ttlTicks, tokenHash: fresh };
  }
  if (op === "renew") return { op, key: KEY, nonce, holder, tokenHash, ttlMs: limits.ttlTicks };
  return op === "release" ? { op, key: KEY, nonce, holder, tokenHash } : { op, key: KEY, nonce };
}

function withClient(clients: readonly Client[], index: number, client: Client): readonly Client[] {
  return clients.map((each, position) => (position === index ? client : each));
}
