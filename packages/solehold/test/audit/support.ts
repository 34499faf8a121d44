/** What the audit tests share: events, temporary folders, and disks that fail or lose power on demand. */
import { cp, mkdtemp, readdir, readFile, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import fc from "fast-check";
import { onTestFinished } from "vitest";
import { realDisk } from "../../src/audit/disk.ts";
import type {
  AuditDisk,
  AuditEntry,
  AuditEvent,
  AuditFile,
  FileAuditOptions,
} from "../../src/audit/index.ts";
import { exportAudit, FileAuditTrail } from "../../src/audit/index.ts";

export function eventOf(changes: Partial<AuditEvent> = {}): AuditEvent {
  return {
    at: 1_700_000_000_000,
    tenant: "acme",
    key: "reports/nightly",
    leaseId: "lease-1",
    action: "grant",
    allowed: true,
    reason: "OK_DECISION_COMPUTE",
    reasonCode: 0x4c530002,
    holder: "worker-1",
    traceId: "trace-1",
    outcome: "applied",
    ...changes,
  };
}

/** Short texts with everything that JSON has to escape, and some that it must not. */
const text = (maxLength: number) =>
  fc.oneof(
    fc.string({ maxLength, unit: "binary" }),
    fc
      .constantFrom("", '"', "\\", "\n", "\u2028", "é", "𝒳", "\ud800", "\u0000", '","hash":"', "�")
      .map((each) => each.slice(0, maxLength)),
  );

export const anyEvent: fc.Arbitrary<AuditEvent> = fc.record(
  {
    at: fc.nat(),
    tenant: text(20),
    key: text(40),
    leaseId: text(20),
    action: fc.constantFrom("grant", "renew", "use", "release", "revoke", "break", "handoff", "expire"),
    allowed: fc.boolean(),
    reason: fc.constantFrom("OK_DECISION_COMPUTE", "LEASE_HELD_BY_OTHER"),
    reasonCode: fc.nat(),
    holder: text(20),
    fence: fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }).map(String),
    purpose: text(10),
    caller: text(10),
    address: text(10),
    traceId: text(20),
    outcome: fc.constantFrom("applied", "refused", "unknown", "none"),
    detail: fc.dictionary(
      fc.stringMatching(/^[a-f][a-z0-9]{0,5}$/),
      fc.oneof(text(10), fc.boolean(), fc.double({ noNaN: true, noDefaultInfinity: true })),
      { maxKeys: 4 },
    ),
  },
  {
    requiredKeys: "at tenant key leaseId action allowed reason reasonCode traceId outcome".split(
      " ",
    ) as never,
  },
) as fc.Arbitrary<AuditEvent>;

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "solehold-audit-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** For use inside a property, where many folders come and go within one test. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "solehold-audit-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The folder as a crash of its writer would leave it now; the writer is ours, so its lock is not copied. */
export async function crashCopy(folder: string, target: string): Promise<string> {
  await cp(folder, target, { recursive: true, filter: (path) => basename(path) !== "lock" });
  return target;
}

export async function segmentFiles(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => name.startsWith("audit-")).sort();
}

export async function readLinesOf(folder: string): Promise<readonly string[]> {
  const texts = await Promise.all(
    (await segmentFiles(folder)).map((file) => readFile(join(folder, file), "utf8")),
  );
  return texts.flatMap((each) => each.split("\n").filter((line) => line !== ""));
}

export async function allEntries(folder: string): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for await (const entry of exportAudit(folder)) entries.push(entry);
  return entries;
}

export async function traces(folder: string): Promise<readonly string[]> {
  return (await allEntries(folder)).map(({ traceId }) => traceId);
}

/** A promise that the test settles itself. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

export type Operation = "open" | "write" | "sync" | "truncate" | "syncFolder";

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: played by the test`), { code });
}

/** The real disk, except that chosen operations fail. A failing write leaves part of its data behind. */
export class FaultyDisk implements AuditDisk {
  readonly counts = { open: 0, write: 0, sync: 0, truncate: 0, syncFolder: 0 };
  /** Operations that fail for now, and how. */
  readonly failing = new Map<Operation, string>();
  /** How much of a failing write reaches the file: 0 to 1. */
  partOfWrite = 0.5;
  /** Opened and not closed again. */
  openFiles = 0;
  /** Awaited before each write, before each sync, and before each truncation. */
  beforeWrite: () => Promise<void> = async () => {};
  beforeSync: () => Promise<void> = async () => {};
  beforeTruncate: () => Promise<void> = async () => {};
  /** Bytes of each file that are known to survive a loss of power. */
  readonly safeBytes = new Map<string, number>();
  /** Files whose name would survive it. */
  readonly safeNames = new Set<string>();

  #begin(operation: Operation): void {
    this.counts[operation] += 1;
    const code = this.failing.get(operation);
    if (code !== undefined) throw systemError(code);
  }

  async open(path: string): Promise<AuditFile> {
    this.#begin("open");
    const file = await realDisk.open(path);
    this.openFiles += 1;
    const write = async (data: Buffer, position: number): Promise<void> => {
      await this.beforeWrite();
      try {
        this.#begin("write");
      } catch (cause) {
        await file.write(data.subarray(0, Math.floor(data.length * this.partOfWrite)), position);
        throw cause;
      }
      await file.write(data, position);
    };
    const sync = async (): Promise<void> => {
      await this.beforeSync();
      this.#begin("sync");
      const size = await file.size();
      await file.sync();
      this.safeBytes.set(basename(path), size);
    };
    return {
      size: () => file.size(),
      close: () => {
        this.openFiles -= 1;
        return file.close();
      },
      write,
      sync,
      truncate: async (length) => {
        await this.beforeTruncate();
        this.#begin("truncate");
        await file.truncate(length);
        this.safeBytes.set(basename(path), Math.min(length, this.safeBytes.get(basename(path)) ?? 0));
      },
    };
  }

  async syncFolder(path: string): Promise<void> {
    this.#begin("syncFolder");
    await realDisk.syncFolder(path);
    for (const name of await readdir(path)) this.safeNames.add(name);
  }

  /** A copy of the folder after a loss of power: of what was not synced, any part is there. */
  async powerLoss(folder: string, target: string, keep: number): Promise<string> {
    await crashCopy(folder, target);
    for (const name of await segmentFiles(target)) {
      if (!this.safeNames.has(name)) {
        await rm(join(target, name));
        continue;
      }
      const size = (await readFile(join(target, name))).length;
      const safe = Math.min(size, this.safeBytes.get(name) ?? 0);
      await truncate(join(target, name), safe + Math.floor((size - safe) * keep));
    }
    return target;
  }
}

/** A trail on that disk which answers when an entry is safe, unless the options say otherwise. */
export async function openOn(
  disk: FaultyDisk,
  options: Partial<FileAuditOptions> & { readonly folder: string },
): Promise<FileAuditTrail> {
  return await FileAuditTrail.open({ durability: "before-reply", disk, ...options });
}
