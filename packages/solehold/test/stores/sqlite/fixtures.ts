/** Folders, records and child processes for the tests of the embedded store. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach } from "vitest";
import type { LeaseKey, LeaseRecord } from "../../../src/core/index.ts";
import { randomId, realEnv } from "../../../src/env/index.ts";
import type { LeaseStore, StoredRecord, WriteResult } from "../../../src/store/index.ts";

/** With SOLEHOLD_EFFORT=full the tests that take minutes do all that they can. */
export const FULL_EFFORT = process.env.SOLEHOLD_EFFORT === "full";

const cleanups: (() => void | Promise<void>)[] = [];

/** Runs after the test, last registered first. */
export function afterThisTest(cleanup: () => void | Promise<void>): void {
  cleanups.push(cleanup);
}

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** An existing empty folder; its sub-folder "store" is a good place for a store. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "solehold-embedded-"));
  afterThisTest(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function closing<T extends LeaseStore>(store: T): T {
  afterThisTest(() => store.close());
  return store;
}

export function keyNamed(name: string): LeaseKey {
  return { tenant: "default", name };
}

export function recordNamed(name: string, changes: Partial<LeaseRecord> = {}): LeaseRecord {
  return {
    key: keyNamed(name),
    holder: "holder-1",
    purpose: "Operation",
    tokenHash: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
    term: 0n,
    generation: 1n,
    ttlMs: 30_000,
    grantedAtMs: 1_750_000_000_000,
    renewedAtMs: 1_750_000_000_000,
    expiresAtMs: 1_750_000_030_000,
    endedAtMs: null,
    state: "held",
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    minHoldUntilMs: null,
    lockDelayMs: 0,
    handoff: null,
    reservation: null,
    ticket: "",
    nonce: randomId(realEnv),
    idempotency: null,
    note: "",
    metadata: {},
    ...changes,
  };
}

export async function put(
  store: LeaseStore,
  record: LeaseRecord,
  expected: string | null = null,
): Promise<WriteResult> {
  const { results } = await store.apply([{ key: record.key, expected, next: record }]);
  return results[0]!;
}

/** Creates or updates, and fails the test if that is refused; the new version. */
export async function putApplied(
  store: LeaseStore,
  record: LeaseRecord,
  expected: string | null = null,
): Promise<string> {
  const result = await put(store, record, expected);
  if (result.kind !== "applied" || result.version === null) throw new Error(`the write was ${result.kind}`);
  return result.version;
}

export async function get(store: LeaseStore, name: string): Promise<StoredRecord> {
  const { records } = await store.read([keyNamed(name)]);
  return records[0]!;
}

export async function found(
  store: LeaseStore,
  name: string,
): Promise<Extract<StoredRecord, { kind: "found" }>> {
  const stored = await get(store, name);
  if (stored.kind !== "found") throw new Error(`'${name}' is ${stored.kind}`);
  return stored;
}

export interface ChildOptions {
  readonly uid?: number;
  /** Of 512 bytes, or more in some shells. */
  readonly fileBlocks?: number;
  /** "own": it is process 1 of a process namespace, as in a container. */
  readonly processes?: "shared" | "own";
}

/** A process that runs `children/<script>` on the built package. */
export class Child {
  readonly process: ChildProcess;
  readonly lines: string[] = [];
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  #errors = "";
  #wake: () => void = () => undefined;

  constructor(script: string, args: readonly string[], options: ChildOptions = {}) {
    const path = fileURLToPath(new URL(`./children/${script}`, import.meta.url));
    const node = [process.execPath, path, ...args];
    // No file of the process can grow beyond the limit, which is how a full disk looks to it.
    const limited = ["/bin/sh", "-c", `ulimit -f ${options.fileBlocks} && exec "$@"`, "sh", ...node];
    const contained = ["unshare", "--pid", "--fork", "--kill-child", ...node];
    const [command = "", ...rest] =
      options.processes === "own" ? contained : options.fileBlocks === undefined ? node : limited;
    this.process = spawn(command, rest, {
      stdio: ["pipe", "pipe", "pipe"],
      ...(options.uid === undefined ? {} : { uid: options.uid }),
    });
    this.ended = new Promise((resolve) => {
      this.process.once("close", (code, signal) => resolve({ code, signal }));
    });
    createInterface({ input: this.process.stdout! }).on("line", (line) => {
      this.lines.push(line);
      this.#wake();
    });
    this.process.stderr!.on("data", (text) => {
      this.#errors += String(text);
    });
    void this.ended.then(() => this.#wake());
    afterThisTest(async () => {
      this.process.kill("SIGKILL");
      await this.ended;
    });
  }

  /** Resolves when the output has a line that fits; rejects when the process ends before. */
  async line(fits: (line: string) => boolean): Promise<string> {
    for (;;) {
      const line = this.lines.find(fits);
      if (line !== undefined) return line;
      if (this.process.exitCode !== null || this.process.signalCode !== null) {
        throw new Error(`the process ended without the expected line: ${this.#errors}`);
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async lineCount(count: number): Promise<void> {
    await this.line(() => this.lines.length >= count);
  }

  send(line: string): void {
    this.process.stdin!.write(`${line}\n`);
  }

  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  get errors(): string {
    return this.#errors;
  }
}
