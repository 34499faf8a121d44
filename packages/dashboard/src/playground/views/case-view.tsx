/** One case: its world, the shipped code or its bug, and what the user made of its faults. */
import { useMemo } from "preact/hooks";
import { Problem } from "../../ui/components.tsx";
import { useAnswer } from "../../ui/use-answer.ts";
import type { Case } from "../data/case.ts";
import type { ChangeView } from "../state/use-view.ts";
import type { View } from "../state/view.ts";
import { playInWorker } from "../worker/client.ts";
import type { Played } from "../worker/play.ts";
import { CodeSwitch } from "./code-switch.tsx";
import { Exploration } from "./exploration.tsx";
import { Stage } from "./stage.tsx";

export interface CaseViewProps {
  readonly shown: Case;
  readonly view: View;
  readonly change: ChangeView;
}

export function CaseView({ shown, view, change }: CaseViewProps) {
  const { world, bug, title } = shown;
  const { faults } = view;
  const played = useMemo(
    (): Played =>
      world.kind === "script" && faults !== null
        ? { kind: "script", script: { ...world.script, faults } }
        : world,
    [world, faults],
  );
  const {
    answer: trace,
    error,
    isBusy,
  } = useAnswer(() => playInWorker(played, title, view.bug), [played, title, view.bug]);
  const broken = view.bug !== null;
  const setBug = (next: string | null): void => change({ bug: next, atMs: null });
  return (
    <article>
      <header class="view-head">
        <h2>{title}</h2>
        <CodeSwitch bug={bug} current={view.bug} onChange={setBug} />
      </header>
      <p class={broken ? "case-text broken" : "case-text"}>
        {broken && view.bug === bug ? shown.bugText : shown.text}
      </p>
      <Problem error={error} />
      {trace === null && error === null && <p class="muted">Playing…</p>}
      {trace !== null && (
        <Stage
          trace={trace}
          view={view}
          change={change}
          busy={isBusy}
          script={played.kind === "script" ? played.script : null}
          next={
            <button type="button" class="button primary" onClick={() => setBug(broken ? null : bug)}>
              {broken ? "Run the shipped code on the same seed" : "Take the rule out"}
            </button>
          }
        />
      )}
      <Exploration bug={bug} code={view.explored} onExplore={(explored) => change({ explored })} />
    </article>
  );
}
