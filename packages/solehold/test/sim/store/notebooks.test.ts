// Notes of the simulated store, as store/index.ts asks for them.
import { describe, expect, it } from "vitest";
import { SimulatedNote, SimulatedNotebook, StoreNotebooks } from "../../../src/sim/store/notebooks.ts";

const NAME = "trail";
const MOST_NOTES = 4;

function store(hasRoom: () => boolean = () => true) {
  const notebooks = new StoreNotebooks(hasRoom);
  const open = (): SimulatedNotebook => {
    const opened = notebooks.open(NAME);
    return new SimulatedNotebook(opened, MOST_NOTES, async (through) =>
      notebooks.save(NAME, opened.opening, through),
    );
  };
  return { notebooks, open };
}

function noteOf(notebook: SimulatedNotebook, text: string): SimulatedNote {
  const note = notebook.note(text.length, (page, start) => start + page.write(text, start));
  if (!(note instanceof SimulatedNote)) throw new Error("no note could be made");
  return note;
}

function sent(notebook: SimulatedNotebook, text: string): SimulatedNote {
  const note = noteOf(notebook, text);
  note.send();
  return note;
}

const textsIn = ({ left }: Pick<SimulatedNotebook, "left">): readonly string[] =>
  left.map(({ text }) => text);

describe("notes of the simulated store", () => {
  it("outlive who wrote them, in the order of their places", () => {
    const { notebooks, open } = store();
    const notebook = open();
    const [first, second] = [sent(notebook, "first"), sent(notebook, "second")];
    expect([notebooks.keep(second), notebooks.keep(first)]).toEqual([true, true]);
    expect(textsIn(open())).toEqual(["first", "second"]);
  });

  it("are left until the store hears that they were given back: with a later note, or by save", async () => {
    const { notebooks, open } = store();
    const notebook = open();
    const first = sent(notebook, "first");
    notebooks.keep(first);
    const second = sent(notebook, "second");
    notebook.giveBack(first);
    // It had left before.
    notebooks.keep(second);
    expect(notebooks.left(NAME)).toHaveLength(2);
    notebooks.keep(sent(notebook, "third"));
    expect(textsIn({ left: notebooks.left(NAME) })).toEqual(["second", "third"]);
    notebook.giveBack(second);
    await notebook.save();
    expect(textsIn(open())).toEqual(["third"]);
  });

  it("are not kept while there is no room, nor for who does not have the notebook any more", () => {
    let isFull = true;
    const { notebooks, open } = store(() => !isFull);
    const notebook = open();
    expect(notebooks.keep(sent(notebook, "too much"))).toBe(false);
    isFull = false;
    const late = sent(notebook, "late");
    const successor = open();
    expect(notebooks.keep(late)).toBe(false);
    expect(notebooks.keep(sent(successor, "own"))).toBe(true);
    expect(textsIn(open())).toEqual(["own"]);
  });

  it("are not made while too many were not given back, and a successor is not held up by those never written", async () => {
    const { notebooks, open } = store();
    const notebook = open();
    const notes = ["1", "2", "3", "4"].map((text) => sent(notebook, text));
    expect(notebook.note(1, (_page, start) => start)).toBeNull();
    for (const note of notes.filter(({ place }) => place % 2 === 0)) notebooks.keep(note);
    const successor = open();
    expect(textsIn(successor)).toEqual(["2", "4"]);
    for (const note of successor.left) successor.giveBack(note);
    await successor.save();
    expect(notebooks.left(NAME)).toEqual([]);
    for (const text of ["5", "6", "7", "8"]) expect(notebooks.keep(sent(successor, text))).toBe(true);
  });

  it("are none where what should be written throws or says that there is nothing", () => {
    const { open } = store();
    const notebook = open();
    expect(notebook.note(8, () => -1)).toBeNull();
    const broken = (): never => {
      throw new RangeError("cannot be written");
    };
    expect(() => notebook.note(8, broken)).toThrow("cannot be written");
    expect(sent(notebook, "first").place).toBe(1);
  });
});
