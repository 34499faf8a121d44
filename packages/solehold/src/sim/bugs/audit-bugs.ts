/** Mistakes on the way of an audit entry through a store's notes into the files: they show when a process dies. */
import type { AuditEvent, AuditNotes, AuditTrail } from "../../service/index.ts";
import type { ConditionalWrite, LeaseStore, Notebook } from "../../store/index.ts";
import { SimulatedNote } from "../store/notebooks.ts";
import type { PlantedBug } from "./bug.ts";
import { withApply, withMembers, withoutEvents } from "./wrap.ts";

const caughtBy = ["audit"];

export const AUDIT_BUGS: readonly PlantedBug[] = [
  {
    name: "note-given-back-at-once",
    mistake: "a note is given back before its event is on the disk",
    caughtBy,
    withinSeeds: 400,
    faults: ["crash"],
    mutations: {
      audit: (trail) =>
        withNotes(trail, (notes) => ({
          keep: (note, events) => {
            notes.keep(note, events);
            notes.drop(note);
          },
        })),
    },
  },
  {
    name: "note-kept-in-memory-alone",
    mistake: "the store says that it kept a note before it did",
    caughtBy,
    withinSeeds: 400,
    faults: ["crash"],
    mutations: {
      store: (store) =>
        withApply(store, async (writes) => {
          const { results, ...reply } = await store.apply(writes.map(withoutNote));
          return {
            ...reply,
            results: results.map((result, index) => {
              const isNoted = result.kind === "applied" && (writes[index]?.aside ?? null) !== null;
              return isNoted ? { ...result, aside: "kept" } : result;
            }),
          };
        }),
    },
  },
  {
    name: "note-of-a-lost-race",
    mistake: "the store keeps the note of a write that lost the race",
    caughtBy,
    withinSeeds: 300,
    mutations: {
      store: (store, _env, engine) =>
        withApply(store, async (writes) => {
          const reply = await store.apply(writes);
          reply.results.forEach(({ kind }, index) => {
            const note = writes[index]?.aside;
            if (kind === "conflict" && note instanceof SimulatedNote) engine.notebooks.keep(note);
          });
          return reply;
        }),
    },
  },
  {
    name: "dropped-note-not-appended",
    mistake: "when the store's answer was lost its note is dropped, and nothing is appended in its place",
    caughtBy,
    withinSeeds: 100,
    mutations: {
      audit: (trail) => {
        const dropped = new Set<string>();
        let made: readonly AuditEvent[] = [];
        const noted = withNotes(trail, (notes) => ({
          make: (events) => {
            made = events;
            return notes.make(events);
          },
          drop: (note) => {
            for (const { traceId } of made) dropped.add(traceId);
            notes.drop(note);
          },
        }));
        return withoutEvents(noted, ({ allowed, traceId }) => allowed && dropped.has(traceId));
      },
    },
  },
  {
    name: "note-taken-twice",
    mistake: "whoever takes over takes a note twice",
    caughtBy,
    withinSeeds: 300,
    mutations: {
      store: (store) =>
        withNotebook(store, (notebook) => ({ left: notebook.left.flatMap((note) => [note, note]) })),
    },
  },
  {
    name: "left-notes-not-read",
    mistake: "whoever takes over does not look at the notes that were left",
    caughtBy,
    withinSeeds: 300,
    mutations: { store: (store) => withNotebook(store, () => ({ left: [] })) },
  },
];

function withNotes(trail: AuditTrail, change: (notes: AuditNotes) => Partial<AuditNotes>): AuditTrail {
  const notes = trail.notes ?? null;
  return notes === null ? trail : withMembers(trail, { notes: withMembers(notes, change(notes)) });
}

function withNotebook(store: LeaseStore, change: (notebook: Notebook) => Partial<Notebook>): LeaseStore {
  const open = store.notebook?.bind(store);
  if (open === undefined) return store;
  return withMembers(store, {
    notebook: async (name) => {
      const notebook = await open(name);
      return withMembers(notebook, change(notebook));
    },
  });
}

function withoutNote(write: ConditionalWrite): ConditionalWrite {
  return { ...write, aside: null };
}
