/**
 * One writer per folder, for as long as the trail is open: the folder's lock, refused at once while its owner lives.
 *
 * The owner's host counts, as machines may share the folder. Its container does not: a container that was killed must
 * get its folder back when it starts again under its name. So two containers that share a folder AND a host name are
 * not kept apart by this; the journal notices a second writer by the length of its file.
 */
import { hostname } from "node:os";
import type { Env } from "../env/index.ts";
import { readBoot } from "../support/boot.ts";
import { FolderLock, FolderLockError, type HeldFolderLock, nameOf } from "../support/folder-lock.ts";
import { AuditError, describeCause } from "./error.ts";

export type WriterLock = HeldFolderLock;

export async function lockFolder(folder: string, env: Env): Promise<WriterLock> {
  try {
    const scope = { bootId: readBoot(env).id, host: hostname() };
    const lock = new FolderLock({ folder, scope, timeoutMs: 0, env, durable: "yes" });
    const held = await lock.acquire();
    await lock.tidy().catch(() => undefined);
    return held;
  } catch (cause) {
    throw new AuditError("AUDIT_LOCKED", describe(folder, cause), cause);
  }
}

function describe(folder: string, cause: unknown): string {
  if (!(cause instanceof FolderLockError))
    return `cannot lock the audit folder ${folder}: ${describeCause(cause)}`;
  const { owner, path } = cause;
  if (owner === null) return `${path} is not a lock: remove it if no process writes to the folder`;
  const fix = `Stop it or use another folder; if it is surely gone, remove ${path}.`;
  return `the audit folder ${folder} is being written by ${nameOf(owner)}. ${fix}`;
}
