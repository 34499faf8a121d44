/**
 * Who a request comes from. With API keys every request must bring one, or another proof that was set up; without any, the server listens on loopback
 * only and accepts requests of this machine.
 *
 * A browser is on this machine too: a page from elsewhere could make it send requests here. So a request
 * must name a loopback host (against DNS rebinding), and one with an Origin must come from this server's own
 * pages. A proxy on this machine passes on requests of others: what it adds is refused, too. Secrets are compared in constant time, for unknown keys as for known ones.
 */
import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Env, Timer } from "solehold/internal";
import { forbidden } from "../protocol/problem.ts";
import type { Identities } from "./identities.ts";
import { hashSecret, KEY_START, type Keys, parseKey, type StoredKey } from "./key-file.ts";
import { isLoopback } from "./loopback.ts";
import { LOCAL_PRINCIPAL, type Principal } from "./principal.ts";
import { NotAuthenticatedError, unauthenticated } from "./refusals.ts";

/** Changes take effect within a second: one look, and what the file system needs. */
const LOOK_EVERY_MS = 500;
const BEARER = /^Bearer +(\S+)$/i;
/** Whoever adds these stands between this server and others, who are not on this machine. */
const PROXY_HEADERS = ["forwarded", "x-forwarded-for", "x-real-ip", "via"] as const;
const NO_HASH = hashSecret("no such key");

interface KnownKey {
  readonly principal: Principal;
  readonly hash: string;
  readonly stored: StoredKey;
  /** `stored` as text, to see whether it changed. */
  readonly text: string;
}

/** What became of an API key. "known": it is valid since before anybody asked. */
export type KeyChange = "known" | "add" | "change" | "revoke" | "expire" | "remove";
export type KeyListener = (change: KeyChange, key: StoredKey) => void;

export interface AuthenticatorOptions {
  readonly env: Env;
  readonly keys: Keys;
  /** "always": also before the first key was made. */
  readonly required: "always" | "with-keys";
  /** Further ways in; null for none. */
  readonly identities: Identities | null;
  readonly onReloadFailed: (error: unknown) => void;
}

export class Authenticator {
  readonly #env: Env;
  readonly #source: Keys;
  readonly #identities: Identities | null;
  readonly #onReloadFailed: (error: unknown) => void;
  /** Also those that ended. */
  #stored: readonly StoredKey[] = [];
  /** Those that are valid. */
  #keys: ReadonlyMap<string, KnownKey> = new Map();
  #onKeyChange: KeyListener = () => undefined;
  /** Of those for whom something is open: a stream, a watch, a wait. */
  readonly #listeners = new Map<Principal, Set<() => void>>();
  #keysRequired = false;
  #fingerprint = "";
  #timer: Timer | null = null;

  constructor(options: AuthenticatorOptions) {
    this.#env = options.env;
    this.#source = options.keys;
    this.#identities = options.identities;
    this.#keysRequired = options.required === "always";
    this.#onReloadFailed = options.onReloadFailed;
  }

  /** The same for two servers that know the same keys and further ways in. */
  rights(keys: "with its own keys" | "with those in the store"): string {
    const own = keys === "with its own keys" ? this.#stored : [];
    const inOrder = [...own].sort((a, b) => (a.id < b.id ? -1 : 1));
    return JSON.stringify([keys, inOrder, this.#identities?.text ?? null]);
  }

  get keysRequired(): boolean {
    return this.#keysRequired;
  }

  /** The tenants that keys name: what is alive in them is worth knowing from the start. */
  tenants(): readonly string[] {
    return [...new Set([...this.#keys.values()].flatMap(({ principal }) => principal.scope.tenants ?? []))];
  }

  async start(): Promise<void> {
    await this.#reload();
    this.#update();
    this.#plan();
  }

  /** Calls back with every valid key, and from now on with every change. */
  onKeyChange(listener: KeyListener): void {
    this.#onKeyChange = listener;
    for (const { stored } of this.#keys.values()) listener("known", stored);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** False once the key is revoked, expired or changed, or, without a key, once keys are required. */
  isCurrent(principal: Principal): boolean {
    if (this.#identities?.has(principal)) return this.#identities.isCurrent(principal);
    if (!this.#keysRequired) return principal === LOCAL_PRINCIPAL;
    const known = this.#keys.get(principal.id);
    return known !== undefined && known.principal === principal && !this.#isExpired(known);
  }

  /** Calls back once when `isCurrent` has become false, within a second. Returns how to stop that. */
  onInvalid(principal: Principal, listener: () => void): () => void {
    const listeners = this.#listeners.get(principal) ?? new Set();
    this.#listeners.set(principal, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(principal) === listeners)
        this.#listeners.delete(principal);
    };
  }

  /** Throws or rejects with a ProblemError: 401 when a good key is missing, 403 when the request comes from elsewhere. */
  admit({ headers, socket }: Pick<IncomingMessage, "headers" | "socket">): Principal | Promise<Principal> {
    const { origin, host } = headers;
    if (origin !== undefined && hostOf(origin) !== host) {
      throw new NotAuthenticatedError(forbidden("requests from pages of another origin are not accepted"));
    }
    if (this.#keysRequired) return this.#identify(headers.authorization, socket);
    if (!isLoopback(nameOf(host))) {
      throw new NotAuthenticatedError(
        forbidden("this server has no API keys: it only answers to a loopback host name"),
      );
    }
    const forwarding = PROXY_HEADERS.find((name) => headers[name] !== undefined);
    if (forwarding !== undefined) {
      throw new NotAuthenticatedError(
        forbidden(
          `this server has no API keys, and '${forwarding}' says that a proxy passes on requests of others: make a key with 'solehold keys add'`,
        ),
      );
    }
    return LOCAL_PRINCIPAL;
  }

  #identify(authorization: string | undefined, socket: unknown): Principal | Promise<Principal> {
    const [, text = ""] = BEARER.exec(authorization ?? "") ?? [];
    const identities = this.#identities;
    if (identities !== null && text !== "" && !text.startsWith(KEY_START)) return identities.ofToken(text);
    const certified = authorization === undefined ? (identities?.ofCertificate(socket) ?? null) : null;
    return certified ?? this.#keyHolder(text);
  }

  #keyHolder(text: string): Principal {
    const given = parseKey(text);
    const known = given === null ? undefined : this.#keys.get(given.id);
    const expected = Buffer.from(known?.hash ?? NO_HASH);
    const actual = Buffer.from(hashSecret(given?.secret ?? ""));
    const isRight = timingSafeEqual(expected, actual);
    if (isRight && known !== undefined && !this.#isExpired(known)) return known.principal;
    throw new NotAuthenticatedError(unauthenticated(), given?.id ?? null);
  }

  #isExpired({ stored }: KnownKey): boolean {
    return this.#env.wallMs() >= expiryMs(stored);
  }

  #plan(): void {
    this.#timer = this.#env.timer(LOOK_EVERY_MS, () => {
      this.#reload()
        // The keys that were known stay in force: a broken file must not let everybody in.
        .catch((error) => this.#onReloadFailed(error))
        .finally(() => {
          this.#update();
          if (this.#timer !== null) this.#plan();
        });
    });
  }

  async #reload(): Promise<void> {
    const fingerprint = await this.#source.fingerprint();
    if (fingerprint === this.#fingerprint) return;
    this.#stored = await this.#source.read();
    this.#fingerprint = fingerprint;
    if (this.#stored.length > 0) this.#keysRequired = true;
  }

  /** Makes what the keys and the clock say take effect. */
  #update(): void {
    const before = this.#keys;
    const nowMs = this.#env.wallMs();
    const valid = this.#stored.filter((key) => key.revokedAt === undefined && nowMs < expiryMs(key));
    this.#keys = new Map(valid.map((key) => [key.id, this.#known(key)]));
    for (const [id, { stored }] of before)
      if (!this.#keys.has(id)) this.#onKeyChange(this.#endOf(id), stored);
    for (const [id, known] of this.#keys) {
      const old = before.get(id);
      if (old !== known) this.#onKeyChange(old === undefined ? "add" : "change", known.stored);
    }
    this.#endInvalid();
  }

  /** A key that did not change keeps its principal: what it has open stays open. */
  #known(stored: StoredKey): KnownKey {
    const before = this.#keys.get(stored.id);
    const text = JSON.stringify(stored);
    return before?.text === text ? before : knownKey(stored, text);
  }

  #endOf(id: string): KeyChange {
    const stored = this.#stored.find((key) => key.id === id);
    if (stored === undefined) return "remove";
    return stored.revokedAt === undefined ? "expire" : "revoke";
  }

  #endInvalid(): void {
    for (const [principal, listeners] of [...this.#listeners]) {
      if (this.isCurrent(principal)) continue;
      this.#listeners.delete(principal);
      for (const listener of [...listeners]) listener();
    }
  }
}

function knownKey(stored: StoredKey, text: string): KnownKey {
  const { id, hash, prefixes, actions } = stored;
  const tenants = stored.tenants.includes("*") ? null : stored.tenants;
  const scope = Object.freeze({ tenants, prefixes, actions: new Set(actions) });
  return { principal: Object.freeze({ id, scope }), hash, stored, text };
}

function expiryMs({ expiresAt }: StoredKey): number {
  return expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
}

function hostOf(origin: string): string | null {
  try {
    return new URL(origin).host;
  } catch {
    return null;
  }
}

/** The name in a Host header, without its port. */
function nameOf(host: string | undefined): string {
  if (host === undefined) return "";
  return host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1");
}
