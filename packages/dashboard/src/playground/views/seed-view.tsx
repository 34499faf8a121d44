/** Any seed: a world that it draws, with the shipped code or a planted bug. */
import { useMemo, useState } from "preact/hooks";
import { Banner } from "../../ui/components.tsx";
import { useTrace } from "../state/use-trace.ts";
import type { ChangeView } from "../state/use-view.ts";
import type { View } from "../state/view.ts";
import type { Played } from "../worker/play.ts";
import { CodeSwitch } from "./code-switch.tsx";
import { Stage } from "./stage.tsx";

export interface SeedViewProps {
  readonly seed: number;
  readonly view: View;
  readonly change: ChangeView;
}

const LARGEST_SEED = 999_999_999;

export function SeedView({ seed, view, change }: SeedViewProps) {
  const [typed, setTyped] = useState(String(seed));
  const world = useMemo((): Played => ({ kind: "seed", seed: { seed } }), [seed]);
  const { trace, problem, busy } = useTrace(world, `Seed ${seed}`, view.bug);
  const open = (next: number): void => {
    setTyped(String(next));
    change({ place: { kind: "seed", seed: next }, atMs: null, key: null });
  };
  return (
    <article>
      <header class="case-head">
        <h2>Seed {seed}</h2>
        <CodeSwitch bug={null} current={view.bug} onChange={(bug) => change({ bug, atMs: null })} />
      </header>
      <p class="case-text">
        A seed draws a whole world: how many nodes and keys, which faults, every delay. The same seed is the
        same run, here and with <code>solehold sim --seed {seed} --through library</code>.
      </p>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          const next = Number(typed);
          if (Number.isInteger(next) && next >= 0 && next <= LARGEST_SEED) open(next);
        }}
      >
        <label>
          Seed{" "}
          <input
            class="input"
            type="number"
            min={0}
            max={LARGEST_SEED}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="button">
          Run
        </button>
        <button type="button" class="button" onClick={() => open(seed + 1)}>
          Next seed
        </button>
      </form>
      {problem !== null && (
        <Banner tone="bad" role="alert">
          {problem}
        </Banner>
      )}
      {trace === null || problem !== null ? null : (
        <Stage
          trace={trace}
          view={view}
          change={change}
          busy={busy}
          script={null}
          next={
            view.bug === null ? null : (
              <button type="button" class="button primary" onClick={() => change({ bug: null, atMs: null })}>
                Run the shipped code on the same seed
              </button>
            )
          }
        />
      )}
    </article>
  );
}
