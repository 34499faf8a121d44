/** The explorer: every state of a small world, with the bug until its shortest trace, or without until there are no more. */
import { Problem } from "../../ui/components.tsx";
import { useAnswer } from "../../ui/use-answer.ts";
import { EXPLORABLE } from "../data/explorable.ts";
import type { ExploredCode } from "../state/view.ts";
import { promiseOf } from "../state/words.ts";
import { exploreInWorker } from "../worker/client.ts";
import type { Explored } from "../worker/protocol.ts";

export interface ExplorationProps {
  readonly bug: string;
  /** With which code; null before anybody asked. */
  readonly code: ExploredCode | null;
  readonly onExplore: (code: ExploredCode) => void;
}

export function Exploration({ bug, code, onExplore }: ExplorationProps) {
  const isExplorable = EXPLORABLE.has(bug);
  const { answer, error, isBusy } = useAnswer(
    async () => (code === null || !isExplorable ? null : await exploreInWorker(bug, code)),
    [bug, code],
  );
  if (!isExplorable) return null;
  return (
    <section class="panel exploration">
      <h3>Every state of a small world</h3>
      <p class="muted">
        The explorer visits all interleavings, delays, losses and clocks of a world with few clients, breadth
        first, with the shipped decision and validity functions. With the bug it stops at the shortest way to
        a broken promise.
      </p>
      <div class="actions">
        <button type="button" class="button" disabled={isBusy} onClick={() => onExplore("broken")}>
          Find the shortest trace of {bug}
        </button>
        <button type="button" class="button" disabled={isBusy} onClick={() => onExplore("shipped")}>
          Visit every state with the shipped code
        </button>
      </div>
      <div role="status">
        {isBusy && code !== null && <p class="muted">Searching…</p>}
        {!isBusy && <Problem error={error} />}
        {!isBusy && error === null && answer !== null && <Found explored={answer} />}
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
      {violation.oracle === "ownership" && (
        <p>Now a renewal, a release or a handoff without the holder's token would be applied.</p>
      )}
    </>
  );
}
