/**
 * API keys in the store itself, so that all replicas over it know the same: `serve --keys store`, `keys add --store URL`.
 *
 * A key is a lease in the server's own tenant, which no caller can write to: it holds the hash of the secret and the rights,
 * it ends when the key expires, and it is revoked with the key. Whoever may write to the store may also make keys, as it may
 * write any lease. Servers list the keys twice a second.
 */
import { type LeaseStore, type LeaseView, StoreExecutor } from "solehold";
import { type CommandOutcome, type Env, MAX_DURATION_MS, pagesOf } from "solehold/internal";
import {
  isStoredKey,
  KeyFileError,
  type Keys,
  type MadeKey,
  type NewKey,
  newKey,
  type StoredKey,
} from "./key-file.ts";
import { SYSTEM_TENANT } from "./principal.ts";

const PREFIX = "api-keys/";
const HOLDER = "solehold-keys";
const PAGE = 1_000;
/** What a record's metadata takes. */
const CHUNK_LENGTH = 250;
const MOST_CHUNKS = 8;

export class KeyStore implements Keys {
  readonly #env: Env;
  readonly #executor: StoreExecutor;
  #found: readonly StoredKey[] = [];

  constructor(store: LeaseStore, env: Env) {
    if (store.list === undefined)
      throw new KeyFileError(
        `the store ${store.name} cannot list its keys: keep API keys in the data folder`,
      );
    this.#env = env;
    this.#executor = new StoreExecutor({ store, env, policy: { maxTtlMs: MAX_DURATION_MS } });
  }

  /** As the last `fingerprint` found them. */
  async read(): Promise<readonly StoredKey[]> {
    await this.fingerprint();
    return this.#found;
  }

  /** Changes when a key does. Reads all of them. */
  async fingerprint(): Promise<string> {
    const found: StoredKey[] = [];
    const query = { tenant: SYSTEM_TENANT, prefix: PREFIX, limit: PAGE };
    for await (const { leases } of pagesOf((page) => this.#executor.list(page), query))
      found.push(...leases.flatMap(storedKeyOf));
    this.#found = found;
    return JSON.stringify(found);
  }

  async add(key: NewKey): Promise<MadeKey> {
    const made = newKey(key, this.#env);
    const text = Buffer.from(JSON.stringify(made.stored)).toString("base64url");
    if (text.length > CHUNK_LENGTH * MOST_CHUNKS)
      throw new KeyFileError(
        `the rights of a key in the store must fit into ${(CHUNK_LENGTH * MOST_CHUNKS * 3) / 4} bytes: give it fewer tenants or prefixes, or make several keys`,
      );
    const { expiresAt } = made.stored;
    const lifeMs =
      expiresAt === undefined ? MAX_DURATION_MS : Math.max(1, Date.parse(expiresAt) - this.#env.wallMs());
    const outcome = await this.#executor.execute({
      ...{ op: "acquire", key: keyOf(made.stored.id), holder: HOLDER, ttlMs: lifeMs },
      metadata: chunksOf(text),
    });
    if (outcome.kind === "applied") return made;
    throw new KeyFileError(`the key could not be written to the store: ${failureOf(outcome)}`);
  }

  async revoke(id: string): Promise<boolean> {
    if (!(await this.read()).some((key) => key.id === id && key.revokedAt === undefined)) return false;
    const outcome = await this.#executor.execute({ op: "revoke", key: keyOf(id) });
    if (outcome.kind === "applied") return true;
    throw new KeyFileError(`the key could not be revoked in the store: ${failureOf(outcome)}`);
  }
}

function failureOf(outcome: Exclude<CommandOutcome, { readonly kind: "applied" }>): string {
  return outcome.kind === "unsettled" ? outcome.cause.message : outcome.decision.reason;
}

function keyOf(id: string): { readonly tenant: string; readonly name: string } {
  return { tenant: SYSTEM_TENANT, name: `${PREFIX}${id}` };
}

function chunksOf(text: string): Readonly<Record<string, string>> {
  const count = Math.ceil(text.length / CHUNK_LENGTH);
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      `part${index}`,
      text.slice(index * CHUNK_LENGTH, (index + 1) * CHUNK_LENGTH),
    ]),
  );
}

/** None for a record that is no key. */
function storedKeyOf({ key, metadata, live, endedAtMs, state }: LeaseView): readonly StoredKey[] {
  const parts = Array.from({ length: MOST_CHUNKS }, (_, index) => metadata[`part${index}`] ?? "");
  let stored: unknown;
  try {
    stored = JSON.parse(Buffer.from(parts.join(""), "base64url").toString("utf8"));
  } catch {
    return [];
  }
  if (!isStoredKey(stored) || key.name !== `${PREFIX}${stored.id}`) return [];
  if (live || state === "held") return [stored];
  return [{ ...stored, revokedAt: new Date(endedAtMs ?? 0).toISOString() }];
}
