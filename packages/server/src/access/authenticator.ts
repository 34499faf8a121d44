/**
 * Who a request comes from. With API keys every request must bring one; without any, the server listens on loopback
 * only and accepts requests of this machine.
 *
 * A browser is on this machine too: a page from elsewhere could make it send requests here. So a request
 * must name a loopback host (against DNS rebinding), and one with an Origin must come from this server's own
 * pages. Secrets are compared in constant time, for unknown keys as for known ones.
 */
import { timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Env, ProblemInput, Timer } from "solehold/internal";
import { forbidden, ProblemError } from "../protocol/problem.ts";
import { hashSecret, KeyFile, parseKey, type StoredKey } from "./key-file.ts";
import { isLoopback } from "./loopback.ts";
import { LOCAL_PRINCIPAL, type Principal } from "./principal.ts";

/** Changes take effect within a second: one look, and what the file system needs. */
const LOOK_EVERY_MS = 500;
const BEARER = /^Bearer +(\S+)$/i;
const NO_HASH = hashSecret("no such key");

interface KnownKey {
  readonly principal: Principal;
  readonly hash: string;
  readonly expiresAtMs: number;
  /** As it stood in the file. */
  readonly text: string;
}

export class Authenticator {
  readonly #env: Env;
  readonly #file: KeyFile;
  readonly #onReloadFailed: (error: unknown) => void;
  #keys: ReadonlyMap<string, KnownKey> = new Map();
  /** Of those for whom something is open: a stream, a watch, a wait. */
  readonly #listeners = new Map<Principal, Set<() => void>>();
  #keysRequired = false;
  #fingerprint = "";
  #timer: Timer | null = null;
  #lastHost: string | undefined;
  #lastIsLoopback = false;

  constructor(options: { env: Env; dataDir: string; onReloadFailed: (error: unknown) => void }) {
    this.#env = options.env;
    this.#file = new KeyFile(options.dataDir, options.env);
    this.#onReloadFailed = options.onReloadFailed;
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
    this.#plan();
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** False once the key is revoked, expired or changed, or, without a key, once keys are required. */
  isCurrent(principal: Principal): boolean {
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

  /** Throws a ProblemError: 401 when a good key is missing, 403 when the request comes from elsewhere. */
  admit(headers: IncomingHttpHeaders): Principal {
    const { origin, host } = headers;
    if (origin !== undefined && hostOf(origin) !== host) {
      throw new ProblemError(forbidden("requests from pages of another origin are not accepted"));
    }
    if (this.#keysRequired) return this.#identify(headers.authorization);
    if (!this.#isLoopbackHost(host)) {
      throw new ProblemError(
        forbidden("this server has no API keys: it only answers to a loopback host name"),
      );
    }
    return LOCAL_PRINCIPAL;
  }

  /** Clients send the same Host again and again. */
  #isLoopbackHost(host: string | undefined): boolean {
    if (host !== this.#lastHost) {
      this.#lastHost = host;
      this.#lastIsLoopback = isLoopback(nameOf(host));
    }
    return this.#lastIsLoopback;
  }

  #identify(authorization: string | undefined): Principal {
    const [, text = ""] = BEARER.exec(authorization ?? "") ?? [];
    const given = parseKey(text);
    const known = given === null ? undefined : this.#keys.get(given.id);
    const expected = Buffer.from(known?.hash ?? NO_HASH);
    const actual = Buffer.from(hashSecret(given?.secret ?? ""));
    const isRight = timingSafeEqual(expected, actual);
    if (isRight && known !== undefined && !this.#isExpired(known)) return known.principal;
    throw new ProblemError(unauthenticated());
  }

  #isExpired({ expiresAtMs }: KnownKey): boolean {
    return this.#env.wallMs() >= expiresAtMs;
  }

  #plan(): void {
    this.#timer = this.#env.timer(LOOK_EVERY_MS, () => {
      this.#reload()
        // The keys that were known stay in force: a broken file must not let everybody in.
        .catch((error) => this.#onReloadFailed(error))
        .finally(() => {
          this.#endInvalid();
          if (this.#timer !== null) this.#plan();
        });
    });
  }

  async #reload(): Promise<void> {
    const fingerprint = await this.#file.fingerprint();
    if (fingerprint === this.#fingerprint) return;
    const keys = await this.#file.read();
    this.#fingerprint = fingerprint;
    const valid = keys.filter(({ revokedAt }) => revokedAt === undefined);
    this.#keys = new Map(valid.map((key) => [key.id, this.#known(key)]));
    if (keys.length > 0) this.#keysRequired = true;
  }

  /** A key that did not change keeps its principal: what it has open stays open. */
  #known(key: StoredKey): KnownKey {
    const before = this.#keys.get(key.id);
    const text = JSON.stringify(key);
    return before?.text === text ? before : knownKey(key, text);
  }

  #endInvalid(): void {
    for (const [principal, listeners] of [...this.#listeners]) {
      if (this.isCurrent(principal)) continue;
      this.#listeners.delete(principal);
      for (const listener of [...listeners]) listener();
    }
  }
}

function knownKey(key: StoredKey, text: string): KnownKey {
  const tenants = key.tenants.includes("*") ? null : key.tenants;
  const scope = { tenants, prefixes: key.prefixes, actions: new Set(key.actions) };
  const principal = Object.freeze({ id: key.id, scope: Object.freeze(scope) });
  const expiresAtMs = key.expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(key.expiresAt);
  return { principal, hash: key.hash, expiresAtMs, text };
}

export function unauthenticated(): ProblemInput {
  return {
    reason: "UNAUTHENTICATED",
    detail: "send a valid API key: 'authorization: Bearer shk_...' (made by: solehold keys add)",
    facts: { field: "authorization" },
  };
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
