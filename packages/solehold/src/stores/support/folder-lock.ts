/**
 * One process at a time, over all processes of the machine. The lock is a file that appears whole, by a hard link, and
 * names its owner. An owner that is certainly gone is succeeded by exactly one process:
 *
 * To remove the lock of a dead owner D, a process must first own the file `takeover-D`. Only one can, as it appears by
 * a hard link, too. It looks at the lock again, and removes it only if it still is D's. If that process dies in
 * between, its own `takeover-D` names a dead owner T, and the right to go on belongs to whoever owns `takeover-T`. The
 * right ends only after the lock was removed; nonces never repeat, so one who comes late finds another lock and leaves
 * it alone.
 *
 * A stopped owner is not dead: others wait, and after a time give up without having written anything. If a person
 * deletes its lock, it finds that out at the end, and leaves the lock of its successor alone.
 */
import { link, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { delay, type Env, jittered, randomId } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import { codeOf, removeIfThere } from "./files.ts";
import { isGone, type ProcessIdentity, parseIdentity, thisProcess } from "./process-identity.ts";

export interface LockOptions {
  /** The folder for the lock's files. */
  readonly folder: string;
  readonly bootId: string;
  readonly timeoutMs: number;
  readonly env: Env;
}

const FIRST_WAIT_MS = 1;
const LONGEST_WAIT_MS = 25;

export class FolderLock {
  readonly #options: LockOptions;
  readonly #path: string;

  constructor(options: LockOptions) {
    this.#options = options;
    this.#path = join(options.folder, "lock");
  }

  /** Runs `work` while no other process does. Rejects with a StoreError "timeout" when it never got to it. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    const { folder, env, bootId } = this.#options;
    const self = thisProcess(randomId(env), bootId);
    const card = join(folder, `owner-${self.nonce}`);
    await writeFile(card, JSON.stringify(self), { mode: 0o600, flag: "wx" });
    try {
      await this.#acquire(card);
    } finally {
      await removeIfThere(card);
    }
    let result: T;
    try {
      result = await work();
    } catch (error) {
      await this.#release(self).catch(() => undefined);
      throw error;
    }
    await this.#release(self);
    return result;
  }

  /** Removes what processes that died while they waited left behind. */
  async tidy(): Promise<void> {
    const { folder, bootId } = this.#options;
    for (const file of await readdir(folder)) {
      const owner = file.startsWith("owner-") ? await this.#ownerOf(join(folder, file)) : null;
      if (owner !== null && isGone(owner, bootId)) await removeIfThere(join(folder, file));
    }
  }

  /** The work is done by then, so a failure here says nothing about it. */
  async #release(self: ProcessIdentity): Promise<void> {
    let cause: unknown;
    try {
      if ((await this.#ownerOf(this.#path))?.nonce === self.nonce) return await removeIfThere(this.#path);
      cause = new Error("somebody deleted it while this process wrote");
    } catch (error) {
      cause = error;
    }
    const message = `the lock '${this.#path}' was lost: ${(cause as Error).message}`;
    throw new StoreError("internal", message, { outcome: "unknown", cause });
  }

  async #acquire(card: string): Promise<void> {
    const { env, timeoutMs } = this.#options;
    const deadlineMs = env.monotonicMs() + timeoutMs;
    for (let waitMs = FIRST_WAIT_MS; !(await linked(card, this.#path)); ) {
      const owner = await this.#ownerOf(this.#path);
      if (owner !== null && (await this.#succeed(owner, card))) continue;
      if (env.monotonicMs() >= deadlineMs) throw this.#timeout(owner);
      await delay(env, jittered(env, waitMs, 0.5));
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    }
  }

  /** Removes the lock of a dead owner. False when it is not dead, or another process is about to do so. */
  async #succeed(dead: ProcessIdentity, card: string): Promise<boolean> {
    const { folder, bootId } = this.#options;
    const claims: string[] = [];
    let owner: ProcessIdentity | null = dead;
    for (;;) {
      if (owner === null || !isGone(owner, bootId)) return false;
      const claim = join(folder, `takeover-${owner.nonce}`);
      claims.push(claim);
      if (await linked(card, claim)) break;
      owner = await this.#ownerOf(claim);
    }
    if ((await this.#ownerOf(this.#path))?.nonce === dead.nonce) await removeIfThere(this.#path);
    for (const claim of claims) await removeIfThere(claim);
    return true;
  }

  /** Null when there is none any more, or something else lies there. */
  async #ownerOf(path: string): Promise<ProcessIdentity | null> {
    try {
      return parseIdentity(await readFile(path, "utf8"));
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw error;
    }
  }

  #timeout(owner: ProcessIdentity | null): StoreError {
    const who = owner === null ? "another process" : `process ${owner.pid}`;
    const message = `waited ${this.#options.timeoutMs} ms for ${who} to finish writing: if that process is gone for good, delete '${this.#path}'`;
    return new StoreError("timeout", message, { outcome: "not-applied" });
  }
}

/** Atomic: the name appears with its whole content, or another is there already. */
async function linked(card: string, path: string): Promise<boolean> {
  try {
    await link(card, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}
