/**
 * One process at a time, over all processes of the machine. The lock is a file that appears whole, by a hard link, and
 * names its owner. An owner that is certainly gone is succeeded by exactly one process:
 *
 * To remove the lock of a dead owner D, a process must first own the file `takeover-D`. Only one can, as it appears by
 * a hard link, too. It looks at the lock again, and removes it only if it still is D's. If that process dies in
 * between, its own `takeover-D` names a dead owner T, and the right to go on belongs to the owner of `takeover-T`. The
 * right ends only after the lock was removed; nonces never repeat, so a process that is late finds another lock and leaves
 * it alone.
 *
 * A stopped owner is not dead: others wait, and after a time give up without having written anything. If a person
 * deletes its lock, it finds that out at the end, and leaves the lock of its successor alone.
 *
 * Which owners can be judged at all is the user's choice: see `PidScope`.
 */
import { link, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { delay, type Env, jittered, randomId } from "../env/index.ts";
import { codeOf, removeIfThere } from "./files.ts";
import {
  isGone,
  type PidScope,
  type ProcessIdentity,
  parseIdentity,
  thisProcess,
} from "./process-identity.ts";

export interface FolderLockOptions {
  /** The folder for the lock's files. */
  readonly folder: string;
  readonly scope: PidScope;
  /** How long to wait for an owner that is not certainly gone. 0 gives up at once. */
  readonly timeoutMs: number;
  readonly env: Env;
  /** "yes": after a power cut the lock names its owner and can be succeeded. "no" saves a sync for short work. */
  readonly durable: "yes" | "no";
}

/** "held": it was never ours, and nothing was done. "lost": somebody deleted it while it was ours. */
export class FolderLockError extends Error {
  override readonly name = "FolderLockError";
  readonly kind: "held" | "lost";
  /** The file to remove if its owner is gone for good. */
  readonly path: string;
  /** Null when it is not known. */
  readonly owner: ProcessIdentity | null;

  constructor(
    message: string,
    facts: { kind: "held" | "lost"; path: string; owner: ProcessIdentity | null; cause?: unknown },
  ) {
    super(message, { cause: facts.cause });
    this.kind = facts.kind;
    this.path = facts.path;
    this.owner = facts.owner;
  }
}

export interface HeldFolderLock {
  /** Rejects with a FolderLockError "lost" when the lock is not ours any more. */
  release(): Promise<void>;
}

const FIRST_WAIT_MS = 1;
const LONGEST_WAIT_MS = 25;

export class FolderLock {
  readonly #options: FolderLockOptions;
  readonly #path: string;

  constructor(options: FolderLockOptions) {
    this.#options = options;
    this.#path = join(options.folder, "lock");
  }

  /** Rejects with a FolderLockError "held" when the time is over. */
  async acquire(): Promise<HeldFolderLock> {
    const { folder, env, scope, durable } = this.#options;
    const self = thisProcess(randomId(env), scope);
    const card = join(folder, `owner-${self.nonce}`);
    try {
      await writeFile(card, JSON.stringify(self), { mode: 0o600, flag: "wx", flush: durable === "yes" });
      await this.#link(card);
    } finally {
      // What is left is garbage that `tidy` removes: no reason to leak a lock that is ours.
      await removeIfThere(card).catch(() => undefined);
    }
    return { release: () => this.#release(self) };
  }

  /** Runs `work` while no other process does. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    const lock = await this.acquire();
    let result: T;
    try {
      result = await work();
    } catch (error) {
      await lock.release().catch(() => undefined);
      throw error;
    }
    // The work is done by then, so a failure here says nothing about it.
    await lock.release();
    return result;
  }

  /** Removes what processes that died left behind. Only for the holder: then no dead owner has the lock. */
  async tidy(): Promise<void> {
    const { folder, scope } = this.#options;
    for (const file of await readdir(folder)) {
      if (!/^(owner|takeover)-/.test(file)) continue;
      const owner = await this.#ownerOf(join(folder, file));
      if (isIdentity(owner) && isGone(owner, scope)) await removeIfThere(join(folder, file));
    }
  }

  async #release(self: ProcessIdentity): Promise<void> {
    let cause: unknown;
    try {
      const owner = await this.#ownerOf(this.#path);
      if (isIdentity(owner) && owner.nonce === self.nonce) return await removeIfThere(this.#path);
      cause = new Error("somebody deleted it while this process wrote");
    } catch (error) {
      cause = error;
    }
    const message = `the lock '${this.#path}' was lost: ${(cause as Error).message}`;
    throw new FolderLockError(message, { kind: "lost", path: this.#path, owner: null, cause });
  }

  async #link(card: string): Promise<void> {
    const { env, timeoutMs } = this.#options;
    const deadlineMs = env.monotonicMs() + timeoutMs;
    for (let waitMs = FIRST_WAIT_MS; !(await linked(card, this.#path)); ) {
      const owner = await this.#ownerOf(this.#path);
      const obstacle = isIdentity(owner) ? await this.#succeed(owner, card) : owner;
      // Somebody else moved on, so there is no need to wait.
      if (obstacle === "none") continue;
      if (env.monotonicMs() >= deadlineMs) throw this.#held(obstacle);
      await delay(env, jittered(env, waitMs, 0.5));
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    }
  }

  /** Removes the lock of a dead owner. Else says who stands in the way: it, or one that is about to remove it. */
  async #succeed(first: ProcessIdentity, card: string): Promise<Owner> {
    const { folder, scope } = this.#options;
    const claims: string[] = [];
    let owner = first;
    for (;;) {
      if (!isGone(owner, scope)) return owner;
      const claim = join(folder, `takeover-${owner.nonce}`);
      claims.push(claim);
      if (await linked(card, claim)) break;
      const claimant = await this.#ownerOf(claim);
      if (!isIdentity(claimant)) return claimant;
      owner = claimant;
    }
    const now = await this.#ownerOf(this.#path);
    if (isIdentity(now) && now.nonce === first.nonce) await removeIfThere(this.#path);
    for (const claim of claims) await removeIfThere(claim);
    return "none";
  }

  async #ownerOf(path: string): Promise<Owner> {
    try {
      return parseIdentity(await readFile(path, "utf8")) ?? "unknown";
    } catch (error) {
      if (codeOf(error) === "ENOENT") return "none";
      throw error;
    }
  }

  #held(by: ProcessIdentity | "unknown"): FolderLockError {
    const who = by === "unknown" ? "another process" : nameOf(by);
    const message = `waited ${this.#options.timeoutMs} ms for ${who} to finish writing: if that process is gone for good, delete '${this.#path}'`;
    const owner = by === "unknown" ? null : by;
    return new FolderLockError(message, { kind: "held", path: this.#path, owner });
  }
}

/** "none": there is no such file (any more). "unknown": something else lies there. */
type Owner = ProcessIdentity | "none" | "unknown";

function isIdentity(owner: Owner): owner is ProcessIdentity {
  return typeof owner === "object";
}

/** For people. */
export function nameOf({ pid, host }: ProcessIdentity): string {
  return `process ${pid}${host === undefined ? "" : ` on ${host}`}`;
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
