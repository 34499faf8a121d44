/**
 * One writer per folder. Node has no file locks that the system releases by itself, so this is a protocol
 * over files, safe against two processes that both find the lock of a dead one:
 *
 *  1. `writer-<number>.lock` says who holds that number, `writer-<number>.free` that it was given back. The
 *     highest number counts.
 *  2. Who finds the highest given back, or its holder dead, creates the next number. Creation is exclusive
 *     and atomic with the content (a hard link to a finished file), so one process wins.
 *  3. The winner looks again: if its number or a higher one was used already (it was slow, and the lower
 *     ones had been removed), it withdraws. Else it removes the lower ones and is the writer.
 *  4. Giving back renames the file, which works on a full disk too; the file stays, so that a number is
 *     never used twice.
 *
 * A holder is dead if its process id is, or belongs to a process that started at another time, or if the
 * machine was booted since. Of another machine that cannot be known, so its lock is respected and the error
 * says which file to remove. Two containers that share a folder AND a host name are not kept apart by this;
 * the journal notices a second writer by the length of its file.
 */
import { link, readdir, readFile, rename, unlink } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { writeSynced } from "./disk.ts";
import { AuditError, describeCause, systemCode } from "./error.ts";

const LOCK = /^writer-(\d{12})\.(lock|free)$/;
/** Each attempt fails only because another process moved on, so this is never reached in practice. */
const MOST_ATTEMPTS = 1000;

interface Owner {
  readonly pid: number;
  readonly host: string;
  /** Where the system tells: when the process started, in ticks since the boot, and which boot. */
  readonly startTicks: string | null;
  readonly bootId: string | null;
}

export interface WriterLock {
  release(): Promise<void>;
}

interface LockFile {
  readonly path: string;
  readonly number: number;
  readonly state: "lock" | "free";
}

/** `unique` is any name that no other attempt uses: it names the temporary file. */
export async function lockFolder(folder: string, unique: string): Promise<WriterLock> {
  const draft = join(folder, `writer-${unique}.draft`);
  try {
    await writeSynced(draft, `${JSON.stringify(await describeSelf())}\n`);
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const mine = await tryLock(folder, draft);
      if (mine !== null)
        return { release: () => rename(mine.path, lockFile(folder, mine.number, "free").path) };
    }
    throw new Error("too many processes try at once");
  } catch (cause) {
    if (cause instanceof AuditError) throw cause;
    throw new AuditError(
      "AUDIT_LOCKED",
      `cannot lock the audit folder ${folder}: ${describeCause(cause)}`,
      cause,
    );
  } finally {
    await unlink(draft).catch(() => undefined);
  }
}

/** The lock taken, or null when another process was quicker and everything must be looked at again. */
async function tryLock(folder: string, draft: string): Promise<LockFile | null> {
  const highest = await highestLocks(folder);
  for (const file of highest.filter(({ state }) => state === "lock")) {
    const owner = await readOwner(file.path);
    if (owner === "gone") return null;
    if (await isAlive(owner)) throw locked(folder, file, owner);
  }
  const mine = lockFile(folder, (highest[0]?.number ?? 0) + 1, "lock");
  try {
    await link(draft, mine.path);
  } catch (cause) {
    if (systemCode(cause) === "EEXIST") return null;
    throw cause;
  }
  const after = await highestLocks(folder);
  if (after.length !== 1 || after[0]?.path !== mine.path) {
    await unlink(mine.path);
    return null;
  }
  const lower = (await listLocks(folder)).filter(({ number }) => number < mine.number);
  for (const file of lower) await unlink(file.path).catch(() => undefined);
  return mine;
}

function lockFile(folder: string, number: number, state: "lock" | "free"): LockFile {
  return { path: join(folder, `writer-${String(number).padStart(12, "0")}.${state}`), number, state };
}

async function listLocks(folder: string): Promise<readonly LockFile[]> {
  return (await readdir(folder)).flatMap((name) => {
    const [, number, state] = LOCK.exec(name) ?? [];
    return number === undefined ? [] : [lockFile(folder, Number(number), state === "lock" ? "lock" : "free")];
  });
}

/** All files of the highest number: more than one only while a slow process is about to withdraw. */
async function highestLocks(folder: string): Promise<readonly LockFile[]> {
  const files = await listLocks(folder);
  const highest = files.reduce((most, { number }) => Math.max(most, number), 0);
  return files.filter(({ number }) => number === highest);
}

async function readOwner(path: string): Promise<Owner | "gone"> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (systemCode(cause) === "ENOENT") return "gone";
    throw cause;
  }
  try {
    return JSON.parse(text) as Owner;
  } catch {
    throw new AuditError(
      "AUDIT_LOCKED",
      `${path} is not a lock: remove it if no process writes to the folder`,
    );
  }
}

async function isAlive(owner: Owner): Promise<boolean> {
  if (owner.host !== hostname()) return true;
  if (owner.bootId !== null && owner.bootId !== (await readBootId())) return false;
  const ticks = await readStartTicks(owner.pid);
  if (owner.startTicks !== null) return ticks === owner.startTicks;
  try {
    process.kill(owner.pid, 0);
    return true;
  } catch (cause) {
    return systemCode(cause) !== "ESRCH";
  }
}

async function describeSelf(): Promise<Owner> {
  const [startTicks, bootId] = await Promise.all([readStartTicks(process.pid), readBootId()]);
  return { pid: process.pid, host: hostname(), startTicks, bootId };
}

/** Field 22 of /proc/<pid>/stat, counted after the name, which may itself contain spaces and brackets. */
async function readStartTicks(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
}

async function readBootId(): Promise<string | null> {
  const id = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => null);
  return id === null ? null : id.trim();
}

function locked(folder: string, file: LockFile, owner: Owner): AuditError {
  const who = `process ${owner.pid} on ${owner.host}`;
  const fix = `Stop it or use another folder; if it is surely gone, remove ${file.path}.`;
  return new AuditError("AUDIT_LOCKED", `the audit folder ${folder} is being written by ${who}. ${fix}`);
}
