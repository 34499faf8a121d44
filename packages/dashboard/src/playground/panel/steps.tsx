/** What happens, step by step, with the current one in view. */

import type { Trace } from "@solehold/simulator";
import { useEffect, useRef } from "preact/hooks";
import type { Step } from "../state/moment.ts";
import { timeIn } from "../state/words.ts";

export interface StepsProps {
  readonly trace: Trace;
  readonly steps: readonly Step[];
  readonly current: number;
  readonly onSeek: (ms: number) => void;
}

/** More than these are cut around the current one. */
const MOST = 400;

export function Steps({ trace, steps, current, onSeek }: StepsProps) {
  const list = useRef<HTMLOListElement>(null);
  const first = Math.max(0, Math.min(current - MOST / 2, steps.length - MOST));
  useEffect(() => {
    const box = list.current;
    const item = box?.querySelector<HTMLElement>("[aria-current]") ?? null;
    // Not scrollIntoView: that moves the page as well.
    if (box !== null && item !== null) box.scrollTop = item.offsetTop - box.clientHeight / 2;
  }, [current, steps]);
  return (
    <section class="panel steps">
      <h3 id="steps-title">What happens</h3>
      <ol ref={list} aria-labelledby="steps-title">
        {steps.slice(first, first + MOST).map((step, offset) => {
          const index = first + offset;
          return (
            <li
              key={index}
              class={step.isViolation ? "bad" : index > current ? "later" : ""}
              aria-current={index === current ? "step" : undefined}
            >
              <button type="button" onClick={() => onSeek(step.atMs)}>
                <time>{timeIn(trace, step.atMs, 2)}</time> <span>{step.text}</span>
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
