/**
 * Several servers over one shared store. Each key has a home among those that are alive: its requests go
 * there, so its waiters are in one queue and its writes do not collide. Any other replica would decide
 * the same; it is only slower. When the home does not answer, the next in the key's own order is asked.
 *
 * The API key goes wherever requests go, so an announced address is only used if a certificate or the user names its host,
 * and only once a server answered there. The given addresses always stay usable.
 */

import { askedKey, keyId, type LeaseKey } from "../core/index.ts";
import type { Env, Timer } from "../env/index.ts";
import { rankCoordinators } from "../placement/index.ts";
import { StoreError } from "../store/index.ts";
import type { SseEvent } from "../wire/index.ts";
import type { RemoteAnswer, RemoteRequest, RemoteTransport } from "./transport.ts";

export interface Replica {
  readonly nodeId: string;
  readonly url: string;
  readonly weight: number;
}

export interface ReplicaTransportOptions {
  readonly env: Env;
  /** The addresses that the user gave; the first of them that answers names the others. */
  readonly seeds: readonly string[];
  readonly open: (url: string) => RemoteTransport;
  /** How long a server may take to say who the others are; at most, and by default, a second. */
  readonly callTimeoutMs?: number;
}

/** How long a replica that did not answer is left out. */
const SUSPECT_MS = 1_000;
const REFRESH_MS = 2_000;
const MEMBERS_TIMEOUT_MS = 1_000;

export class ReplicaTransport implements RemoteTransport {
  readonly #options: ReplicaTransportOptions;
  readonly #transports = new Map<string, RemoteTransport>();
  readonly #suspectUntilMs = new Map<string, number>();
  /** Addresses at which a server was found. */
  readonly #answered = new Set<string>();
  #members: readonly Replica[];
  #refresh: Timer | null = null;
  #looking: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: ReplicaTransportOptions) {
    this.#options = options;
    this.#members = options.seeds.map(replicaAt);
    this.#looking = this.#look();
  }

  /** Who is believed to be alive, for messages and tests. */
  get members(): readonly Replica[] {
    return this.#members;
  }

  /** Looking for servers is part of the time that the request may take. */
  async send(request: RemoteRequest): Promise<RemoteAnswer> {
    const startedMs = this.#options.env.monotonicMs();
    await this.#looking;
    const leftMs = request.timeoutMs - (this.#options.env.monotonicMs() - startedMs);
    const url = this.#home(request);
    try {
      const answer = await this.#transportOf(url).send({ ...request, timeoutMs: Math.max(1, leftMs) });
      if (answer.status === 503) this.#suspect(url);
      else this.#answered.add(url);
      return answer;
    } catch (error) {
      if (error instanceof StoreError && error.kind !== "closed") this.#suspect(url);
      throw error;
    }
  }

  async events(
    path: string,
    onEvent: (event: SseEvent) => void,
    onEnd: () => void,
  ): Promise<{ close(): void }> {
    await this.#looking;
    const [url] = this.#alive().map((member) => member.url);
    const address = url ?? this.#options.seeds[0] ?? "";
    try {
      return await this.#transportOf(address).events(path, onEvent, onEnd);
    } catch (error) {
      this.#suspect(address);
      throw error;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#refresh?.cancel();
    for (const transport of this.#transports.values()) transport.close();
  }

  /** The first in the key's own order that is not suspected; a request about no key goes to the first alive. */
  #home({ routeBy }: RemoteRequest): string {
    const alive = this.#alive();
    const [first] = alive;
    if (first === undefined)
      throw new StoreError("config", "no server address is known", { outcome: "not-applied" });
    return (routeBy === undefined ? first : (homeAmong(alive, routeBy) ?? first)).url;
  }

  #alive(): readonly Replica[] {
    const nowMs = this.#options.env.monotonicMs();
    const isTrusted = ({ url }: Replica): boolean => (this.#suspectUntilMs.get(url) ?? 0) <= nowMs;
    const trusted = this.#members.filter(isTrusted);
    if (trusted.length > 0) return trusted;
    const seeds = this.#options.seeds.map(replicaAt).filter(isTrusted);
    return seeds.length > 0 ? seeds : this.#members;
  }

  #suspect(url: string): void {
    this.#suspectUntilMs.set(url, this.#options.env.monotonicMs() + SUSPECT_MS);
    this.#looking ??= this.#look();
  }

  /** Asks one address after another who is alive, until one answers; keeps the last answer when none does. */
  async #look(): Promise<void> {
    this.#refresh?.cancel();
    const known = [...this.#alive().map(({ url }) => url), ...this.#options.seeds];
    for (const url of new Set(known)) {
      const members = await this.#membersFrom(url);
      if (members === null) continue;
      const usable = await this.#usable(members);
      this.#members = usable.length > 0 ? usable : [replicaAt(url)];
      break;
    }
    this.#looking = null;
    if (this.#isClosed) return;
    this.#refresh = this.#options.env.timer(REFRESH_MS, () => {
      this.#looking ??= this.#look();
    });
  }

  /** Those of the announced that may be followed and that answer. */
  async #usable(announced: readonly Replica[]): Promise<readonly Replica[]> {
    const allowed = announced.filter(({ url }) => mayFollow(url, this.#options.seeds));
    const answers = await Promise.all(
      allowed.map(async ({ url }) => this.#answered.has(url) || (await this.#membersFrom(url)) !== null),
    );
    return allowed.filter((_replica, index) => answers[index]);
  }

  async #membersFrom(url: string): Promise<readonly Replica[] | null> {
    try {
      const timeoutMs = Math.min(MEMBERS_TIMEOUT_MS, this.#options.callTimeoutMs ?? MEMBERS_TIMEOUT_MS);
      const request: RemoteRequest = { method: "GET", path: "/v1/replicas", timeoutMs };
      const { status, body } = await this.#transportOf(url).send(request);
      if (status !== 200 && status !== 404) return null;
      this.#answered.add(url);
      return replicasFrom(body);
    } catch {
      this.#suspectUntilMs.set(url, this.#options.env.monotonicMs() + SUSPECT_MS);
      return null;
    }
  }

  #transportOf(url: string): RemoteTransport {
    const known = this.#transports.get(url) ?? this.#options.open(url);
    this.#transports.set(url, known);
    return known;
  }
}

/** Where clients send the requests for a key, or for any slot of a name. */
export function homeOf(key: LeaseKey, replicas: readonly Replica[]): Replica | null {
  return homeAmong(replicas, routeOf(key));
}

/** What a request for a key is routed by: all slots of a name have one queue. */
export function routeOf(key: LeaseKey): string {
  return keyId(askedKey(key));
}

function homeAmong(replicas: readonly Replica[], routeBy: string): Replica | null {
  const [first = null, ...others] = replicas;
  if (others.length === 0) return first;
  const candidates = replicas.map(({ nodeId, weight }) => ({ nodeId, weight }));
  const ranking = rankCoordinators({ candidates, leaseId: routeBy, traceId: "route" });
  const home = ranking.ok ? ranking.ranked[0] : undefined;
  return replicas.find(({ nodeId }) => nodeId === home) ?? first;
}

function replicaAt(url: string): Replica {
  return { nodeId: url, url, weight: 1 };
}

/**
 * An https address is vouched for by its certificate. A plain one by nothing, so the user must have named its host, or the
 * domain that it is in; whoever named an https address gets nothing less.
 */
function mayFollow(announced: string, seeds: readonly string[]): boolean {
  if (seeds.includes(announced)) return true;
  const { protocol, hostname } = URL.canParse(announced)
    ? new URL(announced)
    : { protocol: "", hostname: "" };
  if (protocol !== "http:") return protocol === "https:";
  if (seeds.some((seed) => seed.startsWith("https:"))) return false;
  const named = seeds.map((seed) => new URL(seed).hostname);
  return named.some((host) => hostname === host || hostname.endsWith(`.${host}`));
}

function replicasFrom(body: unknown): readonly Replica[] {
  const { replicas } = (body ?? {}) as { readonly replicas?: unknown };
  if (!Array.isArray(replicas)) return [];
  return replicas.flatMap((replica: unknown) => {
    const { nodeId, url, weight } = (replica ?? {}) as { nodeId?: unknown; url?: unknown; weight?: unknown };
    return typeof nodeId === "string" && typeof url === "string"
      ? [{ nodeId, url, weight: typeof weight === "number" && weight > 0 ? weight : 1 }]
      : [];
  });
}
