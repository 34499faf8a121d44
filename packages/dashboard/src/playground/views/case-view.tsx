/** One case: its world, the shipped code or its bug, and what the user made of its faults. */
import { useMemo } from "preact/hooks";
import { Banner } from "../../ui/components.tsx";
import type { Case } from "../data/case.ts";
import { useTrace } from "../state/use-trace.ts";
import type { ChangeView } from "../state/use-view.ts";
import type { View } from "../state/view.ts";
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
  const { trace, problem, busy } = useTrace(played, title, view.bug);
  const broken = view.bug !== null;
  const setBug = (next: string | null): void => change({ bug: next, atMs: null });
  return (
    <article>
      <header class="case-head">
        <h2>{title}</h2>
        <CodeSwitch bug={bug} current={view.bug} onChange={setBug} />
      </header>
      <p class={broken ? "case-text broken" : "case-text"}>
        {broken && view.bug === bug ? shown.bugText : shown.text}
      </p>
      {problem !== null && (
        <Banner tone="bad" role="alert">
          {problem}
        </Banner>
      )}
      {trace === null ? (
        <p class="muted">Playing…</p>
      ) : (
        <Stage
          trace={trace}
          view={view}
          change={change}
          busy={busy}
          script={played.kind === "script" ? played.script : null}
          next={
            <button type="button" class="button primary" onClick={() => setBug(broken ? null : bug)}>
              {broken ? "Run the shipped code on the same seed" : "Take the rule out"}
            </button>
          }
        />
      )}
      <Exploration bug={bug} key={bug} />
    </article>
  );
}
