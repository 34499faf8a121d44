/**
 * The API keys on disk: what each may do, and the hash of its secret, never the secret. A key is shown once,
 * when it is made. Revoked keys stay in the file, so that a server that had keys never falls back to
 * letting everybody in.
 *
 * Writers take turns by a folder lock; readers see the old or the new file, never half of one.
 */
import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import type { Env } from "solehold/internal";
import { FolderLock, FolderLockError, pidNamespace, readBoot } from "solehold/internal";
import { ACTIONS, type Action } from "./principal.ts";

export interface StoredKey {
  readonly id: string;
  /** For people. */
  readonly name: string;
  /** SHA-256 of the secret, base64url. The secret has 256 random bits, so nothing slower is needed. */
  readonly hash: string;
  /** ["*"] for all. */
  readonly tenants: readonly string[];
  readonly prefixes: readonly string[];
  readonly actions: readonly Action[];
  readonly createdAt: string;
  /** From then on it is refused. Without it the key is valid until it is revoked. */
  readonly expiresAt?: string;
  readonly revokedAt?: string;
}

export type NewKey = Omit<StoredKey, "id" | "hash" | "createdAt" | "revokedAt">;

/** Where API keys are kept. */
export interface Keys {
  read(): Promise<readonly StoredKey[]>;
  /** Changes when what `read` answers does. */
  fingerprint(): Promise<string>;
  /** Makes a key. The returned text is the only place where its secret ever is. */
  add(key: NewKey): Promise<MadeKey>;
  /** False when there is no such key, or it was revoked before. */
  revoke(id: string): Promise<boolean>;
}

export interface MadeKey {
  readonly key: string;
  readonly stored: StoredKey;
}

export const KEY_FILE_NAME = "api-keys.json";
/** Of every API key. */
export const KEY_START = "shk_";
const KEY_PATTERN = /^shk_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/;
/** In the data folder. A folder of its own, because the data folder may hold the lock of a store, too. */
const LOCK_FOLDER_NAME = "api-keys.lock";
/** A change takes milliseconds, so an owner that holds the lock for longer is stuck. */
const LOCK_TIMEOUT_MS = 5_000;

export class KeyFileError extends Error {
  override readonly name = "KeyFileError";
}

export function parseKey(text: string): { readonly id: string; readonly secret: string } | null {
  const [, id, secret] = KEY_PATTERN.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret };
}

export function hashSecret(secret: string): string {
  return createHash("sha256").update("solehold-api-key:").update(secret).digest("base64url");
}

export function newKey(key: NewKey, env: Env): MadeKey {
  const id = Buffer.from(env.randomBytes(6)).toString("hex");
  const secret = Buffer.from(env.randomBytes(32)).toString("base64url");
  const createdAt = new Date(env.wallMs()).toISOString();
  return { key: `shk_${id}_${secret}`, stored: { id, ...key, hash: hashSecret(secret), createdAt } };
}

export class KeyFile implements Keys {
  readonly path: string;
  readonly #env: Env;

  constructor(dataDir: string, env: Env) {
    this.path = `${dataDir}/${KEY_FILE_NAME}`;
    this.#env = env;
  }

  /** Empty when there is no file. */
  async read(): Promise<readonly StoredKey[]> {
    let text: string;
    try {
      text = await readFile(this.path, "utf8");
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw new KeyFileError(`the API keys in ${this.path} cannot be read: ${(cause as Error).message}`);
    }
    return parseFile(text, this.path);
  }

  /** Rejects when there were keys and their file is gone: a server that starts without it would let everybody in. */
  async assertNotLost(): Promise<void> {
    const folder = `${dirname(this.path)}/${LOCK_FOLDER_NAME}`;
    const isThere = async (path: string): Promise<boolean> => (await stat(path).catch(() => null)) !== null;
    if ((await isThere(this.path)) || !(await isThere(folder))) return;
    throw new KeyFileError(
      `${this.path} is gone, and there were API keys: restore it; or, to start without keys, remove ${folder}`,
    );
  }

  async fingerprint(): Promise<string> {
    try {
      const { mtimeMs, size, ino } = await stat(this.path);
      return `${mtimeMs} ${size} ${ino}`;
    } catch {
      return "";
    }
  }

  async add(key: NewKey): Promise<MadeKey> {
    const made = newKey(key, this.#env);
    await this.#change((keys) => [...keys, made.stored]);
    return made;
  }

  async revoke(id: string): Promise<boolean> {
    const revokedAt = new Date(this.#env.wallMs()).toISOString();
    let found = false;
    await this.#change((keys) =>
      keys.map((key) => {
        if (key.id !== id || key.revokedAt !== undefined) return key;
        found = true;
        return { ...key, revokedAt };
      }),
    );
    return found;
  }

  async #change(edit: (keys: readonly StoredKey[]) => readonly StoredKey[]): Promise<void> {
    const folder = `${dirname(this.path)}/${LOCK_FOLDER_NAME}`;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    try {
      await this.#lock(folder).hold(async () => await this.#replace(edit(await this.read())));
    } catch (cause) {
      if (!(cause instanceof FolderLockError)) throw cause;
      throw new KeyFileError(`the API keys in ${this.path}: ${cause.message}`, { cause });
    }
  }

  /** Host and container both count: the data folder may be shared, and a change that is lost is a key not revoked. */
  #lock(folder: string): FolderLock {
    const env = this.#env;
    const scope = { bootId: readBoot(env).id, host: hostname(), pidNamespace: pidNamespace() };
    return new FolderLock({ folder, scope, timeoutMs: LOCK_TIMEOUT_MS, env, durable: "yes" });
  }

  async #replace(keys: readonly StoredKey[]): Promise<void> {
    const draft = `${this.path}.${Buffer.from(this.#env.randomBytes(6)).toString("hex")}.tmp`;
    try {
      const text = `${JSON.stringify({ version: 1, keys }, null, 2)}\n`;
      await writeFile(draft, text, { mode: 0o600, flush: true });
      await chmod(draft, 0o600);
      await rename(draft, this.path);
    } finally {
      await rm(draft, { force: true });
    }
  }
}

function parseFile(text: string, path: string): readonly StoredKey[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new KeyFileError(`${path} is not JSON: restore it, or remove it and make new keys`);
  }
  const { version, keys } = (parsed ?? {}) as { version?: unknown; keys?: unknown };
  if (version !== 1 || !Array.isArray(keys) || !keys.every(isStoredKey)) {
    throw new KeyFileError(
      `${path} does not hold API keys of version 1: restore it, or remove it and make new keys`,
    );
  }
  return keys;
}

export function isStoredKey(value: unknown): value is StoredKey {
  if (typeof value !== "object" || value === null) return false;
  const { id, name, hash, tenants, prefixes, actions, expiresAt } = value as Readonly<
    Record<string, unknown>
  >;
  const texts = [id, name, hash].every((each) => typeof each === "string");
  const lists = [tenants, prefixes, actions].every(
    (each) => Array.isArray(each) && each.every((item) => typeof item === "string"),
  );
  return (
    texts &&
    lists &&
    (expiresAt === undefined || !Number.isNaN(Date.parse(String(expiresAt)))) &&
    (actions as readonly string[]).every((action) => (ACTIONS as readonly string[]).includes(action))
  );
}
