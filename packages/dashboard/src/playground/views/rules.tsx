/** Why each rule exists: for each rule the picture of what happens without it, and two sentences. */
import type { Trace } from "@solehold/simulator";
import { useEffect, useState } from "preact/hooks";
import { useWidth } from "../../ui/use-width.ts";
import type { Case } from "../data/case.ts";
import { RULES } from "../data/cases.ts";
import { Picture } from "../picture/picture.tsx";
import { AT_START, formatView } from "../state/view.ts";
import { promiseOf } from "../state/words.ts";
import { playInWorker } from "../worker/client.ts";

export function Rules() {
  return (
    <article class="rules">
      <h2>Why each rule exists</h2>
      <p class="lead">
        Every rule of Solehold is there because of a mistake that people really make. Each card plants one of
        them into the shipped code and plays the shortest world that was found to show it. Open it to step
        through, and to run the shipped code on the same seed.
      </p>
      <ul class="gallery">
        {RULES.map((each) => (
          <RuleCard key={each.id} rule={each} />
        ))}
      </ul>
    </article>
  );
}

function RuleCard({ rule }: { readonly rule: Case }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const trace = useTraceInSight(rule, box);
  const href = formatView({ ...AT_START, place: { kind: "case", id: rule.id }, bug: rule.bug });
  return (
    <li class="panel rule">
      <div ref={box} class="rule-picture">
        {trace !== null && width > 0 && (
          <Picture
            trace={trace}
            shownKey={keyOf(trace)}
            width={width}
            atMs={trace.endMs}
            faults={[]}
            onSeek={null}
            onFault={null}
          />
        )}
      </div>
      <h3>
        <a href={href}>{rule.title}</a>
      </h3>
      <p>{rule.bugText}</p>
      <p class="rule-foot">
        <code>{rule.bug}</code> breaks: {promiseOf(rule.broken.violation ?? "").toLowerCase()}
      </p>
    </li>
  );
}

/** The key that the broken promise is about. */
export function keyOf({ keys, violation }: Trace): string {
  return keys.find((key) => violation?.message.includes(key) === true) ?? keys[0] ?? "";
}

/** Played when the card comes into sight: nobody waits for three dozen runs. */
function useTraceInSight(
  { world, title, bug }: Case,
  box: { readonly current: HTMLElement | null },
): Trace | null {
  const [trace, setTrace] = useState<Trace | null>(null);
  useEffect(() => {
    if (box.current === null) return;
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting !== true) return;
        observer.disconnect();
        playInWorker(world, title, bug).then(setTrace, () => undefined);
      },
      { rootMargin: "300px" },
    );
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [world, title, bug, box]);
  return trace;
}
