/** From a folder to a store: look before touching anything, open, join the clock. */
import { resolve } from "node:path";
import { type Env, realEnv } from "../../env/index.ts";
import { type Boot, readBoot } from "../../support/boot.ts";
import { assertOptions } from "../support/options.ts";
import { nextClock, StoreClock } from "./clock.ts";
import { configProblem } from "./failure.ts";
import { assertStore, prepareFolder } from "./folder.ts";
import type { CheckReport, ClockReply } from "./protocol.ts";
import { EmbeddedStore } from "./store.ts";
import { Thread } from "./thread.ts";

export interface EmbeddedStoreOptions {
  /** Where the store lives: a folder of its own on a local disk. It is made if it is missing. */
  readonly folder: string;
  /** Clocks, timers and randomness. */
  readonly env?: Env;
}

/** What a test may put in the place of the real world. */
export interface Seams {
  readonly readBoot: (env: Env) => Boot;
  /** "by timer" as where files cannot be watched. */
  readonly wakeUp: "by file" | "by timer";
  /** Larger databases are opened at once and read completely afterwards. */
  readonly checkUpToBytes: number;
  /** How long a commit waits for those of other processes. */
  readonly busyMs: number;
}

const REAL_SEAMS: Seams = { readBoot, wakeUp: "by file", checkUpToBytes: 2 ** 22, busyMs: 10_000 };

/** Rejects with a StoreError "config" when the folder cannot be used; then nothing in it was changed. */
export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<EmbeddedStore> {
  const known = "folder";
  assertOptions("openEmbeddedStore", options, '{ folder: "./leases" }', known);
  return await openWithSeams(options, {});
}

export async function openWithSeams(
  options: EmbeddedStoreOptions,
  changes: Partial<Seams>,
): Promise<EmbeddedStore> {
  const { readBoot, wakeUp, checkUpToBytes, busyMs }: Seams = { ...REAL_SEAMS, ...changes };
  const env = options.env ?? realEnv;
  const folder = folderOf(options.folder);
  const boot = readBoot(env);
  await prepareFolder(folder);
  const origin = Buffer.from(env.randomBytes(6)).readUIntBE(0, 6);
  const [writer, reader] = [new Thread(folder, origin), new Thread(folder, origin)];
  try {
    const report = await reader.ask("inspect", folder, checkUpToBytes);
    const state = await writer.ask("create", folder, busyMs);
    const clock = await joinClock(writer, state, env, boot);
    const behindMs = state.markMs - clock.now();
    if (behindMs > 0)
      throw configProblem(
        `this machine's clock is ${behindMs} ms behind the store in '${folder}', as after restoring a snapshot: reboot it`,
      );
    await reader.ask("open", folder);
    const check = report === null ? () => readAll(folder) : null;
    return new EmbeddedStore({ folder, env, clock, writer, reader, wakeUp, check });
  } catch (error) {
    await reader.close(null);
    await writer.close(null);
    throw error;
  }
}

/** Of several processes that open the store after a boot one begins the epoch, and all others join it. */
async function joinClock(writer: Thread, found: ClockReply, env: Env, boot: Boot): Promise<StoreClock> {
  let state = found;
  for (let next = nextClock(state, env, boot); next !== null; next = nextClock(state, env, boot))
    state = await writer.ask("clock", state, next.clock, next.markMs);
  return new StoreClock(state.clock ?? "", env, boot);
}

/**
 * A thorough look at a store's files, for operators: reads all of the database as it is now, also while it is in use, and
 * changes nothing. Rejects with a StoreError that names the damage.
 */
export async function checkEmbeddedFolder(path: string): Promise<CheckReport | null> {
  const folder = folderOf(path);
  await assertStore(folder);
  return await readAll(folder);
}

async function readAll(folder: string): Promise<CheckReport | null> {
  const thread = new Thread(folder, 0);
  try {
    return await thread.ask("inspect", folder, Number.POSITIVE_INFINITY);
  } finally {
    await thread.close(null);
  }
}

function folderOf(folder: unknown): string {
  if (typeof folder === "string" && folder !== "" && !folder.includes("\0")) return resolve(folder);
  throw configProblem(`embedded: folder must be the path of a folder, got ${JSON.stringify(folder)}`);
}
