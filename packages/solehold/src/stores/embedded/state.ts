/**
 * The store's own state in the database `meta`, and what happens to it when a process opens the store:
 * the first one ever writes it, the first of a boot starts a new epoch of the clock, and everyone sweeps
 * up after processes that have not written for a while.
 *
 * Every process that writes is a MEMBER with a line of its own, rewritten in each of its transactions:
 * the time, which is its part of the high-water mark, and how many entries its journal has. Members never
 * write each other's lines, so no transaction has to look at anything but the records it is about.
 *
 * The lines lie beside the heads of the databases, on a page that every transaction writes anyway. Members of
 * format 1 have theirs in `meta`, and the lines of members that still run count as before. Format 2 has no short
 * form of records. A folder of either is of format 3 from its next opening on.
 */
import type { Env } from "../../env/index.ts";
import type { Boot } from "./boot.ts";
import {
  belongsToBoot,
  type ClockState,
  firstEpoch,
  nextEpoch,
  parseClock,
  printClock,
  StoreClock,
} from "./clock.ts";
import { type Databases, updateMeta } from "./database.ts";
import { configProblem, oneLine } from "./failure.ts";
import { seal, unseal } from "./sealed.ts";

const FORMAT = "3";
const READABLE_FORMATS: readonly string[] = ["1", "2", FORMAT];
const FORMAT_KEY = "format";
const CLOCK_KEY = "clock";
/** The mark as far as no member's line has it: of the epoch's start, of swept members, of closed stores. */
const MARK_KEY = "mark";
export const REVISION_KEY = "revision";
const MEMBER_PREFIX = "m/";

/** A member that wrote nothing for so long is swept up. If it lives, its next write brings it back. */
const SILENT_MS = 600_000;

export interface Member {
  readonly id: string;
  readonly epoch: number;
  readonly markMs: number;
  readonly sequence: number;
}

export function memberKey(id: string): string {
  return `${MEMBER_PREFIX}${id}`;
}

export function memberLine({ epoch, markMs, sequence }: Omit<Member, "id">): string {
  return seal(`${epoch} ${markMs} ${sequence}`);
}

export function readMembers({ root, meta }: Databases): readonly Member[] {
  const members: Member[] = [];
  for (const database of [root, meta]) {
    for (const { key, value } of database.getRange({ start: MEMBER_PREFIX, end: `${MEMBER_PREFIX}~` })) {
      const [epoch = 0, markMs = 0, sequence = 0] = unseal(value).split(" ").map(Number);
      members.push({ id: key.slice(MEMBER_PREFIX.length), epoch, markMs, sequence });
    }
  }
  return members;
}

/** Inside of a transaction. */
function removeMember({ root, meta }: Databases, id: string): void {
  root.remove(memberKey(id));
  meta.remove(memberKey(id));
}

export interface StateRequest {
  readonly databases: Databases;
  readonly env: Env;
  readonly boot: Boot;
  readonly folder: string;
  /** "existing": the folder says that it was in use, so a database without state is a damaged one. */
  readonly expect: "new" | "existing";
}

/** In one transaction, so that of several processes that open at once exactly one starts the epoch. */
export function openState(request: StateRequest): ClockState {
  const { databases, folder } = request;
  try {
    return databases.root.transactionSync(() => stateInTransaction(request));
  } catch (error) {
    if (!(error instanceof DamagedState)) throw error;
    const advice = "restore it from a backup, or use another folder";
    throw configProblem(`the data in '${folder}' is damaged (${error.message}): ${advice}`, error);
  }
}

class DamagedState extends Error {
  override readonly name = "DamagedState";
}

function stateInTransaction(request: StateRequest): ClockState {
  const { databases, env, boot, folder, expect } = request;
  if (databases.meta.get(FORMAT_KEY) === undefined && expect === "new")
    return firstState(databases, env, boot);
  const { format, state, members } = readState(databases);
  // A version that does not know where the lines are, or what the records say, must not work with them.
  if (format !== FORMAT) databases.meta.put(FORMAT_KEY, seal(FORMAT), nextVersion(databases, FORMAT_KEY));
  if (!belongsToBoot(state, boot)) return newEpoch(databases, state, members, env, boot);
  sweep(databases, state, members, { env, boot, folder });
  return state;
}

/** All of it, so that damage is found on opening and not by a write in the middle of the night. */
function readState(databases: Databases): {
  readonly format: string;
  readonly state: ClockState;
  readonly members: readonly Member[];
} {
  try {
    const format = metaValue(databases, FORMAT_KEY);
    if (!READABLE_FORMATS.includes(format)) throw new Error(`the format of its data is '${format}'`);
    for (const key of [MARK_KEY, REVISION_KEY]) metaValue(databases, key);
    const state = parseClock(metaValue(databases, CLOCK_KEY));
    return { format, state, members: readMembers(databases) };
  } catch (error) {
    throw new DamagedState(oneLine(error));
  }
}

function metaValue({ meta }: Databases, key: string): string {
  const value = meta.get(key);
  if (value === undefined) throw new Error(`the store's own value '${key}' is missing`);
  return unseal(value);
}

function firstState({ meta }: Databases, env: Env, boot: Boot): ClockState {
  const state = firstEpoch(env, boot);
  meta.put(FORMAT_KEY, seal(FORMAT), 1);
  meta.put(REVISION_KEY, seal("1"), 1);
  putClock(meta, state);
  return state;
}

/** After a boot nobody who wrote before is left, so all members go, and their journals with them. */
function newEpoch(
  databases: Databases,
  last: ClockState,
  members: readonly Member[],
  env: Env,
  boot: Boot,
): ClockState {
  const markMs = highWater(databases, last, members);
  for (const { id } of members) removeMember(databases, id);
  databases.changes.clearSync();
  const state = nextEpoch(last, markMs, env, boot);
  putClock(databases.meta, state);
  return state;
}

function putClock(meta: Databases["meta"], state: ClockState): void {
  meta.put(CLOCK_KEY, seal(printClock(state)), 1);
  meta.put(MARK_KEY, seal(String(state.startMs)), 1);
}

function highWater(databases: Databases, state: ClockState, members: readonly Member[]): number {
  const marks = members.filter(({ epoch }) => epoch === state.epoch).map(({ markMs }) => markMs);
  return Math.max(state.startMs, Number(metaValue(databases, MARK_KEY)), ...marks);
}

function sweep(
  databases: Databases,
  state: ClockState,
  members: readonly Member[],
  { env, boot, folder }: Pick<StateRequest, "env" | "boot" | "folder">,
): void {
  const nowMs = new StoreClock(state, env, boot).now();
  const markMs = highWater(databases, state, members);
  if (nowMs < markMs) {
    const gap = `${markMs - nowMs} ms behind the store in '${folder}'`;
    throw configProblem(`this machine's clock is ${gap}, as after restoring a snapshot: reboot it`);
  }
  const silent = members.filter((member) => member.markMs < nowMs - SILENT_MS);
  if (silent.length === 0) return;
  databases.meta.put(MARK_KEY, seal(String(markMs)), nextVersion(databases, MARK_KEY));
  for (const { id } of silent) {
    removeMember(databases, id);
    const journal = [...databases.changes.getKeys({ start: `${id}/`, end: `${id}/~` })];
    for (const key of journal) databases.changes.remove(key);
  }
}

function nextVersion({ meta }: Databases, key: string): number {
  return (meta.getEntry(key)?.version ?? 0) + 1;
}

/** So that time that was told before a clean end is never told again, whatever the next boot's clock says. */
export async function raiseMark(databases: Databases, nowMs: number): Promise<void> {
  await updateMeta(databases, MARK_KEY, (text) => (Number(text) < nowMs ? String(nowMs) : null));
}
