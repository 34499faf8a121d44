/** Whether all promises held, in one line that nobody can miss. */
import type { Trace } from "@solehold/simulator";
import type { ComponentChildren } from "preact";
import { type FenceNames, promiseOf } from "../state/words.ts";

export interface VerdictProps {
  readonly trace: Trace;
  readonly summary: string;
  readonly fences: FenceNames;
  readonly children: ComponentChildren;
}

export function Verdict({ trace, summary, fences, children }: VerdictProps) {
  const { violation, expectations } = trace;
  const beyond = expectations !== null && !expectations.exclusive;
  const mark = violation === null ? (expectations === null ? "i" : "✓") : "✖";
  return (
    <div class={`verdict ${violation === null ? (expectations === null ? "plain" : "held") : "broken"}`}>
      <span class="verdict-mark" aria-hidden="true">
        {mark}
      </span>
      <div class="verdict-text">
        <strong>{headline(trace)}</strong>
        <span>
          {violation === null
            ? ""
            : `${asSentence(fences.in(violation.message).replaceAll("default/", ""))} `}
          {summary}
        </span>
        {beyond && (
          <span class="beyond">
            These faults go beyond what was declared: that only one believes is not promised here. What is:
            the guard never takes an older fence after a newer one.
          </span>
        )}
      </div>
      <div class="verdict-next">{children}</div>
    </div>
  );
}

function asSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function headline({ violation, expectations }: Trace): string {
  if (violation !== null) return `Broken promise: ${promiseOf(violation.oracle).toLowerCase()}.`;
  return expectations === null ? "What the audit says." : "Every promise held.";
}
