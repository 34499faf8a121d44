/** The explorer: every state of a small world, with the bug until its shortest trace, or without until there are no more. */
import { useState } from "preact/hooks";
import { EXPLORABLE } from "../data/explorable.ts";
import { promiseOf } from "../state/words.ts";
import { exploreInWorker } from "../worker/client.ts";
import type { Explored } from "../worker/protocol.ts";

type Search = {
  readonly code: "shipped" | "broken";
  readonly found: Explored | null;
  readonly problem: string | null;
};

export function Exploration({ bug }: { readonly bug: string }) {
  const [search, setSearch] = useState<Search | null>(null);
  if (!EXPLORABLE.has(bug)) return null;
  const begin = (code: Search["code"]): void => {
    setSearch({ code, found: null, problem: null });
    exploreInWorker(bug, code).then(
      (found) => setSearch({ code, found, problem: null }),
      (error: Error) => setSearch({ code, found: null, problem: error.message }),
    );
  };
  const waiting = search !== null && search.found === null && search.problem === null;
  return (
    <section class="panel exploration">
      <h3>Every state of a small world</h3>
      <p class="muted">
        The explorer visits all interleavings, delays, losses and clocks of a world with few clients, breadth
        first, with the shipped decision and validity functions. With the bug it stops at the shortest way to
        a broken promise.
      </p>
      <div class="row">
        <button type="button" class="button" disabled={waiting} onClick={() => begin("broken")}>
          Find the shortest trace of {bug}
        </button>
        <button type="button" class="button" disabled={waiting} onClick={() => begin("shipped")}>
          Visit every state with the shipped code
        </button>
      </div>
      <div role="status">
        {waiting && <p class="muted">Searching…</p>}
        {search?.problem !== null && search?.problem !== undefined && <p class="bad">{search.problem}</p>}
        {search?.found !== null && search?.found !== undefined && <Found explored={search.found} />}
      </div>
    </section>
  );
}

function Found({ explored }: { readonly explored: Explored }) {
  const { states, depth, violation, world } = explored;
  const count = states.toLocaleString("en");
  if (violation === null)
    return (
      <p>
        <b class="good">All {count} states</b> of the world “{world}” were visited, up to {depth} steps from
        the start. None breaks a promise.
      </p>
    );
  return (
    <>
      <p>
        <b class="bad">{promiseOf(violation.oracle)}</b> is broken after {violation.trace.length} steps;{" "}
        {count} states of the world “{world}” were visited.
      </p>
      <ol class="trace">
        {violation.trace.map((step, index) => (
          <li key={index}>{step}</li>
        ))}
      </ol>
    </>
  );
}
