/** Events that lie in a store's notebook before they are in the files of a trail. */
import { describe, expect, test, vi } from "vitest";
import { type Env, ManualEnv, realEnv } from "../../../src/env/index.ts";
import type { AuditEvent } from "../../../src/service/audit/index.ts";
import { FileAuditTrail, verifyAudit } from "../../../src/service/audit/index.ts";
import type { LeftNote, Notebook, StoreNote } from "../../../src/store/index.ts";
import { allEntries, crashCopy, eventOf, FaultyDisk, temporaryFolder, traces } from "./support.ts";

const MARGIN = "##";

function textOf({ page, start, end }: StoreNote): string {
  return page.toString("utf8", start, end);
}

/** A notebook in memory: what was written into it outlives the trail, as a store would. */
class PaperNotebook implements Notebook {
  readonly written = new Map<number, StoreNote>();
  left: readonly LeftNote[] = [];
  saves = 0;
  #last = 0;

  note(mostBytes: number, write: (page: Buffer, start: number) => number): StoreNote | null {
    // Between others, as in a store: nothing may be written outside of what was asked for.
    const page = Buffer.alloc(mostBytes + 2 * MARGIN.length, MARGIN);
    const end = write(page, MARGIN.length);
    if (end < MARGIN.length) return null;
    const around =
      page.toString("latin1", 0, MARGIN.length) + page.toString("latin1", mostBytes + MARGIN.length);
    expect(around).toBe(MARGIN + MARGIN);
    this.#last += 1;
    return { place: this.#last, page, start: MARGIN.length, end };
  }

  giveBack({ place }: { readonly place: number }): void {
    this.written.delete(place);
  }

  async save(): Promise<void> {
    this.saves += 1;
  }

  /** As another process would open it. */
  reopened(): PaperNotebook {
    const next = new PaperNotebook();
    next.#last = this.#last;
    next.left = [...this.written.values()].map((note) => ({ place: note.place, text: textOf(note) }));
    for (const note of this.written.values()) next.written.set(note.place, note);
    return next;
  }
}

/** With a clock, timers run by it alone. */
async function openOn(
  folder: string,
  notebook: PaperNotebook,
  disk?: FaultyDisk,
  clock?: ManualEnv,
): Promise<FileAuditTrail> {
  const timer: Env["timer"] = (...args) => (clock ?? realEnv).timer(...args);
  return await FileAuditTrail.open({
    folder,
    durability: "before-reply",
    notebook: async () => notebook,
    env: {
      defer: (work) => realEnv.defer(work),
      randomBytes: (length) => realEnv.randomBytes(length),
      timer,
    },
    ...(disk === undefined ? {} : { disk }),
  });
}

/** What the service and the store do: the note is written with a record, then the trail is told. */
function keep(trail: FileAuditTrail, notebook: PaperNotebook, events: readonly AuditEvent[]): void {
  const note = trail.notes?.make(events) ?? null;
  if (note === null) throw new Error("no note was made");
  notebook.written.set(note.place, note);
  trail.notes?.keep(note, events);
}

const event = (traceId: string): AuditEvent => eventOf({ traceId });

describe("events that a store keeps", () => {
  test("enter the files by themselves, in order with those that are appended, and are given back then", async () => {
    const folder = await temporaryFolder();
    const notebook = new PaperNotebook();
    const trail = await openOn(folder, notebook);
    keep(trail, notebook, [event("1")]);
    keep(trail, notebook, [event("2"), event("3")]);
    expect(notebook.written.size).toBe(2);
    await trail.append(event("4"));
    keep(trail, notebook, [event("5")]);
    // What was durable by then need not be looked at after a crash.
    expect([...notebook.written.values()].map(textOf)).toEqual([expect.stringMatching(/^0*4\n/)]);
    expect((await trail.query()).map(({ traceId }) => traceId)).toEqual(["1", "2", "3", "4", "5"]);
    expect(notebook.written.size).toBe(0);
    await trail.close();
    expect(notebook.saves).toBeGreaterThan(0);
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 5 });
  });

  test("are in the files as if they had been appended, whatever they say", async () => {
    const events = [
      eventOf({ traceId: "plain" }),
      eventOf({ traceId: "ä", key: "Füße/𝒳", holder: 'a "quoted"\\\n one' }),
      eventOf({ traceId: "long", key: "k".repeat(1024), tenant: "t".repeat(256), holder: "h".repeat(256) }),
      eventOf({ traceId: "detailed", detail: { tier: "two\nlines", required: 2 } }),
      eventOf({ traceId: "bare", leaseId: "", fence: "0", allowed: false, outcome: "refused" }),
    ];
    const [noted, appended] = [await temporaryFolder(), await temporaryFolder()];
    const notebook = new PaperNotebook();
    const trail = await openOn(noted, notebook);
    for (const each of events) keep(trail, notebook, [each]);
    keep(trail, notebook, events.slice(0, 2));
    keep(trail, notebook, [events[4]!, events[0]!, events[4]!]);
    await trail.close();
    const other = await FileAuditTrail.open({ folder: appended, durability: "before-reply" });
    const all = [...events, ...events.slice(0, 2), events[4]!, events[0]!, events[4]!];
    for (const each of all) await other.append(each);
    await other.close();
    const withoutChain = (entry: object): object => ({ ...entry, previousHash: "", hash: "" });
    expect((await allEntries(noted)).map(withoutChain)).toEqual(
      (await allEntries(appended)).map(withoutChain),
    );
    expect(await verifyAudit(noted)).toMatchObject({ ok: true, entries: all.length });
  });

  test("reach the files although nothing else is appended and nobody asks", async () => {
    const folder = await temporaryFolder();
    const notebook = new PaperNotebook();
    const trail = await openOn(folder, notebook);
    keep(trail, notebook, [event("alone")]);
    while (notebook.written.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(trail.head().sequence).toBe(1);
    await trail.close();
  });

  test("that a crash kept from the files are added on opening, each once, and the chain goes on", async () => {
    const folder = await temporaryFolder();
    const notebook = new PaperNotebook();
    const disk = new FaultyDisk();
    const trail = await openOn(folder, notebook, disk);
    keep(trail, notebook, [event("1")]);
    await trail.append(event("2"));
    disk.failing.set("write", "ENOSPC");
    keep(trail, notebook, [event("3"), event("4")]);
    keep(trail, notebook, [event("5"), event("5")]);
    await trail.flush().catch(() => undefined);
    const crashed = await crashCopy(folder, await temporaryFolder());
    const next = notebook.reopened();
    // In the files already, but the crash came before the store was told so.
    next.left = [{ place: 0, text: noteTextOf(trail, event("1")) }, ...next.left];
    const reopened = await openOn(crashed, next);
    expect(reopened.takenOver).toBe(4);
    expect(next.written.size).toBe(0);
    await reopened.append(event("6"));
    await reopened.close();
    expect(await traces(crashed)).toEqual(["1", "2", "3", "4", "5", "5", "6"]);
    expect(await verifyAudit(crashed)).toMatchObject({ ok: true, entries: 7 });
    await trail.close().catch(() => undefined);
  });

  test("are taken for missing by their number: two alike, of which one is in the files, need one more", async () => {
    const folder = await temporaryFolder();
    const notebook = new PaperNotebook();
    const trail = await openOn(folder, notebook);
    const text = noteTextOf(trail, event("same"));
    await trail.append(event("same"));
    await trail.close();
    const next = new PaperNotebook();
    next.left = [
      { place: 1, text },
      { place: 2, text },
    ];
    const reopened = await openOn(folder, next);
    expect(reopened.takenOver).toBe(1);
    await reopened.close();
    expect(await traces(folder)).toEqual(["same", "same"]);
  });

  test("outlast a disk that fails, while those that somebody waits for are refused", async () => {
    const folder = await temporaryFolder();
    const notebook = new PaperNotebook();
    const disk = new FaultyDisk();
    const trail = await openOn(folder, notebook, disk);
    await trail.append(event("1"));
    disk.failing.set("write", "EIO");
    keep(trail, notebook, [event("kept")]);
    await expect(trail.append(event("refused"))).rejects.toMatchObject({ code: "AUDIT_WRITE_FAILED" });
    keep(trail, notebook, [event("kept too")]);
    await expect(trail.flush()).rejects.toMatchObject({ code: "AUDIT_WRITE_FAILED" });
    expect(notebook.written.size).toBe(2);
    disk.failing.clear();
    await trail.append(event("2"));
    expect(await traces(folder)).toEqual(["1", "kept", "kept too", "2"]);
    expect(notebook.written.size).toBe(0);
    await trail.close();
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 4 });
  });

  test("do not keep a disk busy that fails: it is tried again after a second, however many come meanwhile", async () => {
    const folder = await temporaryFolder();
    const notebook = new PaperNotebook();
    const disk = new FaultyDisk();
    const clock = new ManualEnv();
    const trail = await openOn(folder, notebook, disk, clock);
    await trail.append(event("1"));
    disk.failing.set("write", "EIO");
    const before = disk.counts.write;
    const tries = (): number => disk.counts.write - before;
    const keepMany = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index += 1) {
        keep(trail, notebook, [event(`kept ${index}`)]);
        if (index % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    };
    let rollBack: () => void = () => undefined;
    disk.beforeTruncate = () =>
      new Promise((resolve) => {
        rollBack = resolve;
      });
    await keepMany(10);
    await clock.advance(20);
    await vi.waitFor(() => expect(trail.lastError).not.toBeNull());
    // These come while it fails, and the rest when it has failed.
    await keepMany(500);
    disk.beforeTruncate = async () => undefined;
    rollBack();
    await keepMany(10_000);
    await clock.advance(20);
    await keepMany(490);
    expect(tries()).toBe(1);
    await vi.waitFor(async () => {
      await clock.advance(1_000);
      expect(tries()).toBeGreaterThan(1);
    });
    disk.failing.clear();
    await vi.waitFor(async () => {
      await clock.advance(1_000);
      expect(trail).toMatchObject({ lag: 0, lastError: null });
    });
    await trail.close();
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 11_001 });
  });

  test("are not made of what is not an event, nor after the end, nor in the background", async () => {
    const folder = await temporaryFolder();
    const trail = await openOn(folder, new PaperNotebook());
    expect(trail.notes?.make([eventOf({ at: -1 })])).toBeNull();
    await trail.close();
    expect(trail.notes?.make([event("late")])).toBeNull();
    const options = { folder, durability: "background", notebook: async () => new PaperNotebook() } as const;
    const lazy = await FileAuditTrail.open(options);
    expect(lazy.notes).toBeNull();
    await lazy.close();
  });
});

/** As a note made now would say it. */
function noteTextOf(trail: FileAuditTrail, noted: AuditEvent): string {
  const note = trail.notes?.make([noted]) ?? null;
  if (note === null) throw new Error("no note was made");
  // Made before anything was in the files.
  return textOf(note).replace(/^\d+/, "0");
}
