/** What watchers of a folder get, and that they miss nothing for good when the system loses events. */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Env, realEnv } from "../../../src/env/index.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
import { openFileStore } from "../../../src/stores/file/index.ts";
import { applyOne, create, recordOf, until } from "../records.ts";

const root = mkdtempSync(join(tmpdir(), "solehold-file-watch-"));
const fresh = () => mkdtempSync(join(root, "case-"));
const EVERYTHING = { tenant: null, prefix: "" };

/** The real world, but nothing takes longer than this. */
const hasty: Env = {
  monotonicMs: () => realEnv.monotonicMs(),
  wallMs: () => realEnv.wallMs(),
  timer: (delayMs, callback, options) => realEnv.timer(Math.min(delayMs, 50), callback, options),
  defer: (callback) => realEnv.defer(callback),
  randomBytes: (length) => realEnv.randomBytes(length),
  random: () => realEnv.random(),
};

afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("watchers of a folder", () => {
  it("get the record with its version, and its absence after a delete", async () => {
    const store = await openFileStore({ folder: fresh() });
    const events: StoreEvent[] = [];
    const watch = await store.watch(EVERYTHING, (event) => events.push(event));
    const record = recordOf("db");
    const version = await create(store, record);
    const changed = { kind: "changed", key: record.key };
    const seen = (stored: object) => async () => {
      const found = events.some((event) => {
        expect(event).toMatchObject(changed);
        return JSON.stringify(event, plain) === JSON.stringify({ ...changed, stored }, plain);
      });
      return found ? found : null;
    };
    await until("the create", seen({ kind: "found", record, version }));
    await applyOne(store, { key: record.key, expected: version, next: null });
    await until("the delete", seen({ kind: "absent" }));
    await watch.close();
    await store.close();
  });

  it("get a change even if the system's queue of events overflowed", async () => {
    const [here, elsewhere] = [fresh(), fresh()];
    const store = await openFileStore({ folder: here, env: hasty });
    const other = await openFileStore({ folder: elsewhere });
    await create(other, recordOf("db", { holder: "them" }));
    const content = readFileSync(join(elsewhere, "leases", "db.lease.json"));
    const events: StoreEvent[] = [];
    await store.watch(EVERYTHING, (event) => events.push(event));
    const leases = join(here, "leases");
    writeFileSync(join(leases, "noise-0"), "");
    // No event is read while this runs, so the queue fills up, and what comes last is lost.
    for (let turn = 0; turn < queueLength(); turn += 1)
      renameSync(join(leases, `noise-${turn % 2}`), join(leases, `noise-${(turn + 1) % 2}`));
    writeFileSync(join(here, "prepared"), content);
    renameSync(join(here, "prepared"), join(leases, "db.lease.json"));
    await until("the lost change", async () =>
      events.some((event) => event.kind === "changed" && event.key.name === "db") ? true : null,
    );
    expect(events).toContainEqual(
      expect.objectContaining({ stored: expect.objectContaining({ kind: "found" }) }),
    );
    await store.close();
    await other.close();
  });
});

function queueLength(): number {
  try {
    return Number(readFileSync("/proc/sys/fs/inotify/max_queued_events", "utf8"));
  } catch {
    return 1;
  }
}

function plain(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
