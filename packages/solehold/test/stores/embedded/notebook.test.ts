/** Notes that the embedded store writes in the same transaction as records. */
import { describe, expect, it } from "vitest";
import type { ConditionalWrite, LeaseStore, Notebook, StoreNote } from "../../../src/store/index.ts";
import { loadLmdb, openDatabases } from "../../../src/stores/embedded/database.ts";
import { openEmbeddedStore } from "../../../src/stores/embedded/index.ts";
import { closing, get, keyNamed, recordNamed, temporaryFolder } from "./fixtures.ts";

const NAME = "trail";

async function notebookOf(store: LeaseStore): Promise<Notebook> {
  if (store.notebook === undefined) throw new Error("the store has no notebooks");
  return await store.notebook(NAME);
}

function noteIn(notebook: Notebook, text: string): StoreNote {
  const note = notebook.note(Buffer.byteLength(text), (page, start) => start + page.write(text, start));
  if (note === null) throw new Error("no room for a note");
  return note;
}

function creation(name: string, note: StoreNote | null): ConditionalWrite {
  return { key: keyNamed(name), expected: null, next: recordNamed(name), aside: note };
}

async function texts(folder: string): Promise<readonly string[]> {
  const store = await openEmbeddedStore({ folder });
  const { left } = await notebookOf(store);
  await store.close();
  return left.map(({ text }) => text);
}

describe("notes in the embedded store", () => {
  it("are left, in their order, with whatever text, when the folder is opened again", async () => {
    const folder = temporaryFolder();
    const store = await openEmbeddedStore({ folder });
    const notebook = await notebookOf(store);
    expect(notebook.left).toEqual([]);
    const [first, second, third] = ["zwölf\n𝒳", "", "3 3\nabc"].map((text) => noteIn(notebook, text));
    const { results } = await store.apply([
      creation("b", second!),
      creation("a", first!),
      creation("c", null),
    ]);
    expect(results.map((result) => result.kind === "applied" && result.aside)).toEqual([
      "kept",
      "kept",
      undefined,
    ]);
    await store.apply([creation("d", third!)]);
    await store.close();
    expect(await texts(folder)).toEqual(["zwölf\n𝒳", "", "3 3\nabc"]);
  });

  it("are told apart however they were made: in a row, with gaps, in another order, over several pages", async () => {
    const folder = temporaryFolder();
    const store = await openEmbeddedStore({ folder });
    const notebook = await notebookOf(store);
    const all = Array.from({ length: 60 }, (_, index) => `${index} ${"ü".repeat((index * 331) % 3_000)}`);
    const notes = all.map((text) => noteIn(notebook, text));
    const isDropped = (index: number): boolean => index % 7 === 3;
    const kept = notes.filter((_, index) => !isDropped(index));
    const [forwards, backwards] = [kept.slice(0, 20), kept.slice(20).reverse()];
    for (const call of [forwards, backwards.slice(0, 16), backwards.slice(16)]) {
      const writes = call.map((note) => creation(`job/${note.place}`, note));
      const { results } = await store.apply(writes);
      expect(results.every((result) => result.kind === "applied" && result.aside === "kept")).toBe(true);
    }
    await store.close();
    expect(await texts(folder)).toEqual(all.filter((_, index) => !isDropped(index)));
  });

  it("are not taken for neighbours because they lie at the same distances in different pages", async () => {
    const folder = temporaryFolder();
    const store = await openEmbeddedStore({ folder });
    const notebook = await notebookOf(store);
    const all = Array.from({ length: 60 }, (_, index) => String(index).padStart(4_000, "x"));
    const notes = all.map((text) => noteIn(notebook, text));
    const second = notes.findIndex(({ page }) => page !== notes[0]?.page);
    const chosen = [second, 1, second + 1, 2];
    await store.apply(chosen.map((index) => creation(`job/${index}`, notes[index]!)));
    await store.close();
    expect(await texts(folder)).toEqual([1, 2, second, second + 1].map((index) => all[index]));
  });

  it("are not made where nothing was written, and take no place then", async () => {
    const store = closing(await openEmbeddedStore({ folder: temporaryFolder() }));
    const notebook = await notebookOf(store);
    const first = noteIn(notebook, "first");
    expect(notebook.note(10, () => -1)).toBeNull();
    const broken = (): number => {
      throw new Error("broken");
    };
    expect(() => notebook.note(10, broken)).toThrow("broken");
    expect(noteIn(notebook, "second")).toMatchObject({ place: first.place + 1 });
  });

  it("are left only as long as they were not given back", async () => {
    const folder = temporaryFolder();
    const store = await openEmbeddedStore({ folder });
    const notebook = await notebookOf(store);
    const notes = ["one", "two", "three"].map((text) => noteIn(notebook, text));
    await store.apply(notes.map((note, index) => creation(`job/${index}`, note)));
    // The second is given back before the first: nothing may be forgotten because of it.
    notebook.giveBack(notes[1]!);
    await notebook.save();
    expect((await notebookOf(store)).left.map(({ text }) => text)).toEqual(["one", "two", "three"]);
    notebook.giveBack(notes[0]!);
    await notebook.save();
    await store.close();
    expect(await texts(folder)).toEqual(["three"]);
  });

  it("are not left again, and make room, though places between those that were left were never written", async () => {
    const folder = temporaryFolder();
    const store = await openEmbeddedStore({ folder });
    const notebook = await notebookOf(store);
    const [first, , third] = ["first", "never written", "third"].map((text) => noteIn(notebook, text));
    await store.apply([creation("a", first!)]);
    await store.apply([creation("c", third!)]);
    await store.close();
    const again = await openEmbeddedStore({ folder });
    const next = await notebookOf(again);
    expect(next.left.map(({ text }) => text)).toEqual(["first", "third"]);
    for (const note of next.left.toReversed()) next.giveBack(note);
    await next.save();
    const { results } = await again.apply([creation("d", noteIn(next, "fourth"))]);
    expect(results).toEqual([expect.objectContaining({ kind: "applied", aside: "kept" })]);
    await again.close();
    expect(await texts(folder)).toEqual(["fourth"]);
  });

  it("tell by a later note what was given back before it", async () => {
    const folder = temporaryFolder();
    const store = await openEmbeddedStore({ folder });
    const notebook = await notebookOf(store);
    const first = noteIn(notebook, "first");
    await store.apply([creation("first", first)]);
    notebook.giveBack(first);
    await store.apply([creation("second", noteIn(notebook, "second"))]);
    await store.close();
    expect(await texts(folder)).toEqual(["second"]);
  });

  it("are not written where a condition of their call does not hold, and the rest of the call is done", async () => {
    const folder = temporaryFolder();
    const store = await openEmbeddedStore({ folder });
    const notebook = await notebookOf(store);
    await store.apply([creation("taken", null)]);
    const notes = ["a", "taken", "b"].map((text) => noteIn(notebook, text));
    const { results } = await store.apply([
      creation("a", notes[0]!),
      creation("taken", notes[1]!),
      creation("b", notes[2]!),
    ]);
    expect(results.map(({ kind }) => kind)).toEqual(["applied", "conflict", "applied"]);
    expect(results.map((result) => result.kind === "applied" && result.aside)).toEqual([
      undefined,
      false,
      undefined,
    ]);
    expect((await get(store, "a")).kind).toBe("found");
    expect((await get(store, "b")).kind).toBe("found");
    await store.close();
    expect(await texts(folder)).toEqual([]);
  });

  it("never let a write through whose own condition does not hold", async () => {
    const store = closing(await openEmbeddedStore({ folder: temporaryFolder() }));
    const notebook = await notebookOf(store);
    await store.apply([creation("old", null)]);
    // What must be absent comes after what fails: inside of a block that does not count.
    const stale: ConditionalWrite = { ...creation("old", noteIn(notebook, "old")), expected: "77" };
    const { results } = await store.apply([stale, creation("new", noteIn(notebook, "new"))]);
    expect(results.map(({ kind }) => kind)).toEqual(["conflict", "applied"]);
    const removal: ConditionalWrite = { key: keyNamed("new"), expected: "78", next: null };
    const again = await store.apply([{ ...removal, aside: noteIn(notebook, "gone") }]);
    expect(again.results.map(({ kind }) => kind)).toEqual(["conflict"]);
    expect((await get(store, "new")).kind).toBe("found");
  });

  it("that are damaged in the file are passed over, and the others are left", async () => {
    const folder = temporaryFolder();
    const store = await openEmbeddedStore({ folder });
    const notebook = await notebookOf(store);
    await store.apply([creation("a", noteIn(notebook, "sound"))]);
    await store.close();
    const lmdb = await loadLmdb();
    const databases = openDatabases(lmdb, folder);
    const raw = databases.root.openDB<string, Buffer>(`notes/${NAME}`, {
      encoding: "string",
      keyEncoding: "binary",
    });
    const cut = "5 0\n5 99\ncut short";
    // What looks like a note behind something that is none may be part of it.
    const unclear = "6 0\nnothing\n7 3\nabc";
    const damaged = ["x", "2 0\n9", "3 0\n5 1e9\nabc", "4 0\n-1 2\nab", "", cut, unclear];
    for (const [slot, value] of damaged.entries()) await raw.put(Buffer.from([0, 0, 1, slot]), value);
    await databases.root.close();
    expect(await texts(folder)).toEqual(["sound"]);
  });

  it("go with a deletion, too", async () => {
    const folder = temporaryFolder();
    const store = await openEmbeddedStore({ folder });
    const notebook = await notebookOf(store);
    const { results } = await store.apply([creation("done", null)]);
    const expected = results[0]?.kind === "applied" ? results[0].version : null;
    const removal: ConditionalWrite = { key: keyNamed("done"), expected, next: null };
    const removed = await store.apply([{ ...removal, aside: noteIn(notebook, "removed") }]);
    expect(removed.results).toEqual([{ kind: "applied", version: null, aside: "kept" }]);
    expect((await get(store, "done")).kind).toBe("absent");
    await store.close();
    expect(await texts(folder)).toEqual(["removed"]);
  });

  it("are bounded: without room the record is written alone, and with room again they are kept", async () => {
    const store = closing(await openEmbeddedStore({ folder: temporaryFolder() }));
    const notebook = await notebookOf(store);
    const notes: StoreNote[] = [];
    let kept = 0;
    for (let index = 0; index < 300; index += 1) {
      const note = noteIn(notebook, "x".repeat(300));
      notes.push(note);
      const { results } = await store.apply([creation(`job/${index}`, note)]);
      expect(results[0]?.kind).toBe("applied");
      if (results[0]?.kind === "applied" && results[0].aside === "kept") kept += 1;
    }
    expect(kept).toBe(256);
    for (const note of notes) notebook.giveBack(note);
    const { results } = await store.apply([creation("later", noteIn(notebook, "later"))]);
    expect(results).toMatchObject([{ kind: "applied", aside: "kept" }]);
    const many = Array.from({ length: 5_000 }, () => notebook.note(0, (_page, start) => start));
    expect(many.filter((note) => note !== null)).toHaveLength(4_095);
    const long = creation("long", noteIn(await store.notebook("another"), "y".repeat(200_000)));
    expect((await store.apply([long])).results).toEqual([{ kind: "applied", version: expect.any(String) }]);
  });
});
