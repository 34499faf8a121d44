/** From a folder to a store: look before touching anything, open, join the clock, mark the folder. */
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { delay, type Env, realEnv } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import { assertOptions } from "../support/options.ts";
import { type Boot, readBoot } from "./boot.ts";
import { assertSoundData } from "./check.ts";
import { levelFor, noteChecked } from "./checked-mark.ts";
import { type ClockState, StoreClock } from "./clock.ts";
import { DATA_FILE, type Databases, type Lmdb, loadLmdb, openDatabases } from "./database.ts";
import { Door, PATIENCE_MS } from "./door.ts";
import { commitFailure, configProblem, oneLine } from "./failure.ts";
import { completeFolder, type FolderState, prepareFolder } from "./folder.ts";
import { REVISION_BLOCK } from "./revisions.ts";
import { spaceLeft } from "./space.ts";
import { openState } from "./state.ts";
import { EmbeddedStore } from "./store.ts";

export interface EmbeddedStoreOptions {
  /** Where the store lives: a folder of its own on a local disk. It is made if it is missing. */
  readonly folder: string;
  /** Clocks, timers and randomness. */
  readonly env?: Env;
}

/** What a test may put in the place of the real world. */
export interface Seams {
  readonly readBoot: (env: Env) => Boot;
  readonly revisionBlock: number;
  /** "deaf" as where files cannot be watched: news then comes by polling. */
  readonly bell: "hearing" | "deaf";
  /** On the disk of a folder, in bytes. */
  readonly spaceLeft: (folder: string) => number;
  /** How long other processes may take to answer. */
  readonly patienceMs: number;
  /** While nobody else writes, and before the database is opened. */
  readonly beforeOpening: () => Promise<void>;
}

const REAL_SEAMS: Seams = {
  readBoot,
  revisionBlock: REVISION_BLOCK,
  bell: "hearing",
  spaceLeft,
  patienceMs: PATIENCE_MS,
  beforeOpening: async () => undefined,
};

const CREATION_PATIENCE_MS = 2_000;
const CREATION_POLL_MS = 20;

/**
 * Rejects with a StoreError "config" when the folder cannot be used; then nothing in it was changed. With "timeout" when
 * another process has it open and does not answer.
 */
export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<EmbeddedStore> {
  assertOptions("openEmbeddedStore", options, '{ folder: "./leases" }');
  return await openWithSeams(options, {});
}

export async function openWithSeams(
  options: EmbeddedStoreOptions,
  changes: Partial<Seams>,
): Promise<EmbeddedStore> {
  const seams: Seams = { ...REAL_SEAMS, ...changes };
  const env = options.env ?? realEnv;
  const folder = folderOf(options);
  const lmdb = await loadLmdb();
  const boot = seams.readBoot(env);
  const state = prepareFolder(folder);
  await assertSound(folder, state, boot.id, env);
  const door = await Door.enter({ folder, env, patienceMs: seams.patienceMs });
  try {
    await seams.beforeOpening();
    return await openInside({ door, databases: openFolder(lmdb, folder), folder, state, env, boot, seams });
  } catch (error) {
    door.leave();
    throw error;
  }
}

interface Opening {
  readonly door: Door;
  readonly databases: Databases;
  readonly folder: string;
  readonly state: FolderState;
  readonly env: Env;
  readonly boot: Boot;
  readonly seams: Seams;
}

async function openInside({ state, boot, ...parts }: Opening): Promise<EmbeddedStore> {
  const { door, databases, folder, env } = parts;
  try {
    const clockState: ClockState = openState({ databases, env, boot, folder, expect: state });
    if (state === "new") completeFolder(folder);
    noteChecked(folder, boot.id);
    door.opened(databases.gate);
    return new EmbeddedStore({ ...parts, clock: new StoreClock(clockState, env, boot) });
  } catch (error) {
    const failure = await commitFailure(error, databases, env, folder);
    await databases.root.close();
    throw failure;
  }
}

function folderOf({ folder }: EmbeddedStoreOptions): string {
  if (typeof folder === "string" && folder !== "" && !folder.includes("\0")) return resolve(folder);
  throw configProblem(`folder must be the path of a folder, got ${JSON.stringify(folder)}`);
}

/** A store that another process is making right now may be seen half made, for a moment. */
async function assertSound(folder: string, state: FolderState, bootId: string, env: Env): Promise<void> {
  const path = join(folder, DATA_FILE);
  const patientUntilMs = env.monotonicMs() + CREATION_PATIENCE_MS;
  for (;;) {
    if (state === "new" && (!existsSync(path) || statSync(path).size === 0)) return;
    try {
      await assertSoundData(folder, levelFor(folder, bootId), env);
      return;
    } catch (error) {
      if (state === "existing" || env.monotonicMs() >= patientUntilMs) throw error;
    }
    await delay(env, CREATION_POLL_MS);
  }
}

function openFolder(lmdb: Lmdb, folder: string): Databases {
  try {
    return openDatabases(lmdb, folder);
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw configProblem(
      `lmdb cannot open '${folder}' (${oneLine(error)}): check the disk and its limits`,
      error,
    );
  }
}
