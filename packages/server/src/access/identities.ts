/**
 * Ways in besides API keys, as a file describes them (`--identities`): tokens of an OpenID Connect issuer, and client
 * certificates. The file's rules say which of them may do what; the first that fits decides, and without one nobody is let in.
 *
 * A token or certificate is good until it expires, and so is what it opened. Neither can be revoked here before that: issue
 * short ones, or take the rule out and restart.
 */
import { createHash } from "node:crypto";
import { TLSSocket } from "node:tls";
import type { JWTPayload, JWTVerifyGetKey } from "jose";
import { BoundedMap, type Env } from "solehold/internal";
import { type Static, Type } from "typebox";
import { forbidden, ProblemError } from "../protocol/problem.ts";
import { Closed } from "../protocol/schemas/kinds.ts";
import { checkOf } from "../protocol/validation.ts";
import { isLoopback } from "./loopback.ts";
import { ACTIONS, type Principal } from "./principal.ts";
import { NotAuthenticatedError, unauthenticated } from "./refusals.ts";

const Texts = Type.Array(Type.String(), { minItems: 1 });

const Rights = {
  tenants: Texts,
  prefixes: Type.Optional(Texts),
  actions: Type.Array(Type.Enum([...ACTIONS])),
};
const TokenRule = Closed({ claim: Type.String(), value: Type.String(), ...Rights });
const CertificateRule = Closed({ certificate: Type.String(), ...Rights });
const Oidc = Closed({
  issuer: Type.String(),
  audience: Type.String(),
  jwksUri: Type.Optional(Type.String()),
});
const IdentityFile = Closed({
  oidc: Type.Optional(Oidc),
  tokens: Type.Optional(Type.Array(TokenRule)),
  certificates: Type.Optional(Type.Array(CertificateRule)),
});
type IdentityRules = Static<typeof IdentityFile>;
type IdentityRights = Static<typeof TokenRule> | Static<typeof CertificateRule>;
const check = checkOf(IdentityFile, "identities");

/** Signatures of public keys only: with a shared secret every server could make tokens. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const REMEMBERED = 10_000;
const DISCOVERY_TIMEOUT_MS = 5_000;

export class Identities {
  readonly #env: Env;
  readonly #rules: IdentityRules;
  /** By the hash of the token, or the certificate's fingerprint: what stays open belongs to one principal. */
  readonly #known = new BoundedMap<Principal>(REMEMBERED);
  readonly #untilMs = new WeakMap<Principal, number>();
  #keys: Promise<JWTVerifyGetKey> | null = null;

  /** `file`: parsed JSON. Throws a RangeError that names the field. */
  constructor(file: unknown, env: Env) {
    this.#env = env;
    this.#rules = checked(file);
  }

  /** The same for two servers that let the same in. */
  get text(): string {
    return JSON.stringify(this.#rules);
  }

  /** Whether this is one of ours. */
  has(principal: Principal): boolean {
    return this.#untilMs.has(principal);
  }

  isCurrent(principal: Principal): boolean {
    return this.#env.wallMs() < (this.#untilMs.get(principal) ?? 0);
  }

  /** Whose token it is. Rejects with a NotAuthenticatedError. */
  async ofToken(token: string): Promise<Principal> {
    const { oidc, tokens = [] } = this.#rules;
    if (oidc === undefined) throw new NotAuthenticatedError(unauthenticated());
    const id = createHash("sha256").update(token).digest("base64url");
    const known = this.#current(id);
    if (known !== null) return known;
    const payload = await this.#verified(token, oidc);
    const { sub = "", exp = 0 } = payload;
    const rule = tokens.find(({ claim, value }) => [payload[claim]].flat().includes(value));
    return this.#remember(id, `oidc:${sub}`, rule, exp * 1_000);
  }

  /** Whose certificate the connection was opened with; null without one. Throws a NotAuthenticatedError. */
  ofCertificate(socket: unknown): Principal | null {
    if (!(socket instanceof TLSSocket) || !socket.authorized) return null;
    const {
      fingerprint256: id,
      subject,
      subjectaltname = "",
      valid_to: validTo,
    } = socket.getPeerCertificate();
    if (id === undefined) return null;
    const known = this.#current(id);
    if (known !== null) return known;
    const alternatives = subjectaltname.split(", ").map((name) => name.replace(/^(DNS|URI):/, ""));
    const names = [subject.CN].flat().concat(alternatives);
    const rule = this.#rules.certificates?.find(({ certificate }) => names.includes(certificate));
    return this.#remember(id, `certificate:${rule?.certificate ?? names[0]}`, rule, Date.parse(validTo));
  }

  #current(id: string): Principal | null {
    const known = this.#known.get(id);
    return known !== undefined && this.isCurrent(known) ? known : null;
  }

  #remember(id: string, who: string, rights: IdentityRights | undefined, untilMs: number): Principal {
    if (rights === undefined)
      throw new NotAuthenticatedError(forbidden("no rule of this server gives you any rights"), who);
    const { tenants, prefixes = [""], actions } = rights;
    const scope = { tenants: tenants.includes("*") ? null : tenants, prefixes, actions: new Set(actions) };
    const principal = Object.freeze({ id: who, scope: Object.freeze(scope) });
    this.#known.set(id, principal);
    this.#untilMs.set(principal, untilMs);
    return principal;
  }

  async #verified(token: string, { issuer, audience, jwksUri }: Static<typeof Oidc>): Promise<JWTPayload> {
    const { jwtVerify } = await import("jose");
    this.#keys ??= keysOf(jwksUri ?? null, issuer);
    try {
      const { payload } = await jwtVerify(token, await this.#keys, {
        ...{ issuer, audience, algorithms: ALGORITHMS, requiredClaims: ["sub", "exp"] },
        currentDate: new Date(this.#env.wallMs()),
      });
      return payload;
    } catch {
      // An issuer that could not be asked is asked again.
      this.#keys.catch(() => {
        this.#keys = null;
      });
      throw new NotAuthenticatedError(unauthenticated());
    }
  }
}

/** The issuer's keys, read again by `jose` when a token names one that is not known. */
async function keysOf(given: string | null, issuer: string): Promise<JWTVerifyGetKey> {
  const { createRemoteJWKSet } = await import("jose");
  return createRemoteJWKSet(new URL(given ?? (await discover(issuer))));
}

async function discover(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(DISCOVERY_TIMEOUT_MS) });
  const { jwks_uri: found } = (await response.json()) as { readonly jwks_uri?: string };
  if (!response.ok || found === undefined || !isSafe(found)) throw new Error(`${url} names no keys`);
  return found;
}

/** What comes by plain HTTP from another machine proves nothing. */
function isSafe(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

function checked(file: unknown): IdentityRules {
  try {
    const rules = check(file);
    const addresses = [rules.oidc?.issuer, rules.oidc?.jwksUri].filter((each) => each !== undefined);
    if (addresses.every(isSafe)) return rules;
  } catch (error) {
    if (error instanceof ProblemError) throw new RangeError(error.message);
    throw error;
  }
  throw new RangeError("oidc.issuer and oidc.jwksUri must be https:// URLs");
}
