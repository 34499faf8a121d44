/** How a file trail is opened. Wrong values are refused here, before anything on disk is touched. */
import { resolve } from "node:path";
import type { Env } from "../env/index.ts";
import { realEnv } from "../env/index.ts";
import type { InvalidEvents } from "./audit-trail.ts";
import { checkCount } from "./audit-trail.ts";
import type { AuditDisk } from "./disk.ts";
import { realDisk } from "./disk.ts";
import { AuditError } from "./error.ts";
import type { AuditDurability } from "./group-commit.ts";
import { checkTrailId } from "./hash-chain.ts";

export interface FileAuditOptions {
  /** Created if absent. One writer at a time; any number of readers. */
  readonly folder: string;
  readonly durability: AuditDurability;
  /** A segment ends with the entry that reaches this size. Default 16 MiB. */
  readonly segmentBytes?: number;
  /** An anchor is written after so many entries, when a segment ends, and on close. Default 1000. */
  readonly anchorEvery?: number;
  /** Events that may wait for the disk. Default 65,536. */
  readonly maxPending?: number;
  /** Names a new trail; checked against an existing one. Default: random. */
  readonly trailId?: string;
  /** Default "refuse". A service that must not fail because of its audit says "sanitise". */
  readonly invalidEvents?: InvalidEvents;
  readonly env?: Env;
  readonly disk?: AuditDisk;
}

const DEFAULTS = { segmentBytes: 16 * 1024 * 1024, anchorEvery: 1000, maxPending: 65_536 } as const;

export type CheckedOptions = Required<Omit<FileAuditOptions, "trailId">> & Pick<FileAuditOptions, "trailId">;

export function checkOptions(options: FileAuditOptions): CheckedOptions {
  if (typeof options.folder !== "string" || options.folder === "") {
    throw new AuditError("AUDIT_OPTION_INVALID", `folder must be a path; got ${String(options.folder)}`);
  }
  if (options.durability !== "before-reply" && options.durability !== "background") {
    const got = String(options.durability);
    throw new AuditError(
      "AUDIT_OPTION_INVALID",
      `durability must be "before-reply" or "background"; got ${got}`,
    );
  }
  if (options.trailId !== undefined) checkTrailId(options.trailId);
  const given = { ...DEFAULTS, invalidEvents: "refuse" as const, env: realEnv, disk: realDisk, ...options };
  checkCount("segmentBytes", given.segmentBytes, { least: 1024, most: 2 ** 40 });
  checkCount("anchorEvery", given.anchorEvery, { least: 1, most: 1_000_000 });
  checkCount("maxPending", given.maxPending, { least: 2, most: 10_000_000 });
  return { ...given, folder: resolve(options.folder) };
}
