/** Any seed: a world that it draws, with the shipped code or a planted bug. */
import { Command, Problem } from "../../ui/components.tsx";
import { useAnswer } from "../../ui/use-answer.ts";
import type { ChangeView } from "../state/use-view.ts";
import type { View } from "../state/view.ts";
import { playInWorker } from "../worker/client.ts";
import { CodeSwitch } from "./code-switch.tsx";
import { Stage } from "./stage.tsx";

export interface SeedViewProps {
  readonly seed: number;
  readonly view: View;
  readonly change: ChangeView;
}

const LARGEST_SEED = 999_999_999;

export function SeedView({ seed, view, change }: SeedViewProps) {
  const {
    answer: trace,
    error,
    isBusy,
  } = useAnswer(
    () => playInWorker({ kind: "seed", seed: { seed } }, `Seed ${seed}`, view.bug),
    [seed, view.bug],
  );
  const open = (next: number): void => change({ place: { kind: "seed", seed: next }, atMs: null, key: null });
  return (
    <article>
      <header class="view-head">
        <h2>Seed {seed}</h2>
        <CodeSwitch bug={null} current={view.bug} onChange={(bug) => change({ bug, atMs: null })} />
      </header>
      <p class="case-text">
        A seed draws a whole world: how many nodes and keys, which faults, every delay. The same seed is the
        same run, here and with <code>solehold sim --seed {seed} --through library</code>.
      </p>
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault();
          const next = Number(new FormData(event.currentTarget).get("seed"));
          if (Number.isInteger(next) && next >= 0 && next <= LARGEST_SEED) open(next);
        }}
      >
        <label>
          Seed{" "}
          <input
            class="input"
            key={seed}
            name="seed"
            type="number"
            min={0}
            max={LARGEST_SEED}
            required
            defaultValue={String(seed)}
          />
        </label>
        <button type="submit" class="button">
          Run
        </button>
        <button type="button" class="button" onClick={() => open(seed + 1)}>
          Next seed
        </button>
      </form>
      {error !== null && (
        <>
          <Problem error={error} />
          <p class="case-text">
            The command line plays every world; <a href="#/file">open its trace here</a>.
          </p>
          <Command text={`npx solehold sim --seed ${seed} --through library --trace run.json`} />
        </>
      )}
      {trace === null && error === null && <p class="muted">Playing…</p>}
      {trace !== null && error === null && (
        <Stage
          trace={trace}
          view={view}
          change={change}
          busy={isBusy}
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
