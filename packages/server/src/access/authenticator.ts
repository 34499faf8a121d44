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

const RELOAD_MS = 1_000;
const BEARER = /^Bearer +(\S+)$/i;
const NO_HASH = hashSecret("no such key");

interface KnownKey {
  readonly principal: Principal;
  readonly hash: string;
}

export class Authenticator {
  readonly #env: Env;
  readonly #file: KeyFile;
  readonly #onReloadFailed: (error: unknown) => void;
  #keys: ReadonlyMap<string, KnownKey> = new Map();
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
    if (timingSafeEqual(expected, actual) && known !== undefined) return known.principal;
    throw new ProblemError(unauthenticated());
  }

  #plan(): void {
    this.#timer = this.#env.timer(RELOAD_MS, () => {
      this.#reload()
        // The keys that were known stay in force: a broken file must not let everybody in.
        .catch((error) => this.#onReloadFailed(error))
        .finally(() => {
          if (this.#timer !== null) this.#plan();
        });
    });
  }

  async #reload(): Promise<void> {
    const fingerprint = await this.#file.fingerprint();
    if (fingerprint === this.#fingerprint) return;
    const keys = await this.#file.read();
    this.#fingerprint = fingerprint;
    this.#keys = new Map(keys.filter(({ revokedAt }) => revokedAt === undefined).map(knownKey));
    if (keys.length > 0) this.#keysRequired = true;
  }
}

function knownKey(key: StoredKey): readonly [string, KnownKey] {
  const tenants = key.tenants.includes("*") ? null : key.tenants;
  const scope = { tenants, prefixes: key.prefixes, actions: new Set(key.actions) };
  return [key.id, { principal: Object.freeze({ id: key.id, scope: Object.freeze(scope) }), hash: key.hash }];
}

function unauthenticated(): ProblemInput {
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
