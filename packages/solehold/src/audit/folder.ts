/**
 * How a trail lies on disk:
 *   trail.json                    the format and the trail's id, written once
 *   audit-000000000001.jsonl      entries, one a line; the name is the sequence of the first one in it
 *   audit-000000004711.jsonl      the next segment begins where the one before ended
 *   anchors.jsonl                 heads: {"sequence":N,"hash":"X"}, each written after its entry was safe
 *   lock                          who writes: see lock.ts
 * Finished segments are never touched again, so they can be copied or moved away while the trail is open.
 */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Env } from "../env/index.ts";
import { codeOf, makeFolders, replaceFile, syncFolder } from "../support/files.ts";
import { AuditError, describeCause } from "./error.ts";
import { checkTrailId } from "./hash-chain.ts";
import { type AuditReader, realReader } from "./line-reader.ts";

export const TRAIL_FILE = "trail.json";
export const ANCHORS_FILE = "anchors.jsonl";
const FORMAT = "solehold-audit-1";
const SEGMENT = /^audit-(\d{12,16})\.jsonl$/;

export interface Segment {
  readonly file: string;
  readonly path: string;
  readonly firstSequence: number;
}

export function segmentAt(folder: string, firstSequence: number): Segment {
  const file = `audit-${String(firstSequence).padStart(12, "0")}.jsonl`;
  return { file, path: join(folder, file), firstSequence };
}

/** Creates the folder if need be, so that it survives a loss of power: each new name is synced in its parent. */
export async function createFolder(folder: string): Promise<void> {
  try {
    const topmost = await makeFolders(folder);
    if (topmost === undefined) return;
    for (let child = folder; child.length >= topmost.length; child = dirname(child))
      await syncFolder(dirname(child));
  } catch (cause) {
    const message = `folder: ${folder} cannot be created: ${describeCause(cause)}`;
    throw new AuditError("AUDIT_OPTION_INVALID", message, cause);
  }
}

/** In the order of their first sequence. */
export async function listSegments(
  folder: string,
  reader: AuditReader = realReader,
): Promise<readonly Segment[]> {
  const names = await reader.names(folder).catch((cause: unknown) => {
    const message = `cannot read the audit folder ${folder}: ${describeCause(cause)}`;
    throw new AuditError("AUDIT_READ_FAILED", message, cause);
  });
  return names
    .flatMap((name) => {
      const segment = segmentAt(folder, Number(SEGMENT.exec(name)?.[1] ?? 0));
      return segment.file === name && segment.firstSequence > 0 ? [segment] : [];
    })
    .sort((a, b) => a.firstSequence - b.firstSequence);
}

/** Null when there is no trail here yet. */
export async function readTrailId(folder: string): Promise<string | null> {
  const path = join(folder, TRAIL_FILE);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return null;
    throw new AuditError("AUDIT_READ_FAILED", `cannot read ${path}: ${describeCause(cause)}`, cause);
  }
  const trailId = parseTrail(text);
  if (trailId !== null) return checkTrailId(trailId);
  const fix = `expected {"format":"${FORMAT}","trailId":"..."}; restore the file from a copy`;
  throw new AuditError("AUDIT_DAMAGED", `${path} does not describe an audit trail: ${fix}`);
}

function parseTrail(text: string): string | null {
  try {
    const { format, trailId } = JSON.parse(text) as { format?: unknown; trailId?: unknown };
    return format === FORMAT && typeof trailId === "string" ? trailId : null;
  } catch {
    return null;
  }
}

/** Under the writer's lock. Renamed into place, so a crash leaves no half of it. */
export async function writeTrailId(folder: string, trailId: string, env: Env): Promise<void> {
  const text = `${JSON.stringify({ format: FORMAT, trailId })}\n`;
  await replaceFile(join(folder, TRAIL_FILE), text, { folder, env });
  await syncFolder(folder);
}
