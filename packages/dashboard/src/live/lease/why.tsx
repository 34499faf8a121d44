/** "Why did my job not run?": a time, perhaps a holder, and the audit answers in a sentence. */

import { useState } from "preact/hooks";
import { type AuditEvent, decisionInWords, type WhyAnswer, whyNotRun } from "solehold/browser";
import { Field, Panel } from "../../ui/components.tsx";
import { useAnswer } from "../../ui/use-answer.ts";
import { messageOf, queryAudit } from "../data/api.ts";
import { storeNow } from "../data/store-clock.ts";
import { isoOfInput, timeInput, timeOf } from "../format.ts";
import { setParams } from "../router.ts";
import { SAME_WAIT_MS, type Waiting } from "./timeline-layout.ts";

/** A denial is written when a wait ends in vain: this long after it began at most. */
const LONGEST_WAIT_MS = 24 * 3_600_000;
/** Whoever asked so long before or after the time is meant. */
const WITHIN_MS = 300_000;
/** Earlier denials have nothing to do with it. */
const NEAR_MS = 600_000;
const MOST_ENTRIES = 500;

export interface WhyProps {
  readonly tenant: string;
  readonly name: string;
  /** From the address: an ISO 8601 instant; empty for now. */
  readonly at: string;
  readonly holder: string;
  readonly holders: readonly string[];
  /** Those that wait now, first come first. */
  readonly waiting: readonly Waiting[];
}

export function Why({ tenant, name, at, holder, holders, waiting }: WhyProps) {
  /** How often: the same question may have another answer later. */
  const [asked, setAsked] = useState(at === "" && holder === "" ? 0 : 1);
  const atMs = at === "" ? null : Date.parse(at);
  const { answer, error } = useAnswer(
    async (signal): Promise<WhyAnswer | null> => {
      if (asked === 0) return null;
      const whenMs = atMs ?? storeNow();
      const events = await eventsAround({ tenant, name, holder }, Math.max(0, Math.floor(whenMs)), signal);
      const question = { atMs: whenMs, withinMs: WITHIN_MS, ...(holder === "" ? {} : { holder }) };
      return whyNotRun(events, question, timeOf);
    },
    [tenant, name, atMs, holder, asked],
  );
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setParams({
      at: isoOfInput(String(form.get("at") ?? "")),
      holder: String(form.get("holder") ?? "").trim(),
    });
    setAsked(asked + 1);
  };
  return (
    <Panel id="why" title="Why did my job not run?" kind="why">
      <form onSubmit={submit}>
        <Field label="It should have run at">
          <input
            class="input"
            type="datetime-local"
            name="at"
            step="1"
            defaultValue={timeInput(atMs ?? storeNow())}
          />
        </Field>
        <Field label="Holder (any when empty)">
          <input class="input" name="holder" list="holders" defaultValue={holder} placeholder="worker-1" />
          <datalist id="holders">
            {holders.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </Field>
        <button type="submit" class="button">
          Ask
        </button>
      </form>
      <div role="status">
        {error !== null && <p class="answer pad">It cannot be answered: {messageOf(error)}.</p>}
        {error === null && answer !== null && (
          <>
            <p class="answer pad">{inWords(answer, { holder, waiting }, atMs)}</p>
            <ul class="because muted">
              {answer.because.map((event) => (
                <li key={`${event.at}${event.traceId}`}>
                  {timeOf(event.at)} {event.holder}: {decisionInWords(event)}
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </Panel>
  );
}

/** What the audit cannot know yet: a wait is written down once it has ended, and need not begin with an attempt. */
function inWords(
  { answer, because: [attempt] }: WhyAnswer,
  { holder, waiting }: Pick<WhyProps, "holder" | "waiting">,
  atMs: number | null,
): string {
  if (attempt?.allowed === true) return answer;
  const place = waiting.findIndex((each) =>
    attempt === undefined
      ? each.holder === holder && (atMs === null || each.fromMs <= atMs + WITHIN_MS)
      : each.holder === attempt.holder && Math.abs(each.fromMs - attempt.at) < SAME_WAIT_MS,
  );
  const waiter = waiting[place];
  if (waiter === undefined) return answer;
  const asked = attempt === undefined ? `${waiter.holder} asked at ${timeOf(waiter.fromMs)}.` : answer;
  return `${asked} It has waited for it since then, and is number ${place + 1} in the queue.`;
}

/**
 * Who held it then, however long ago that began or has lasted since, and the denials that are nearest to that time. Each
 * is asked for apart: between a grant and its end there may be any number of denials.
 */
async function eventsAround(
  { tenant, name, holder }: Pick<WhyProps, "tenant" | "name" | "holder">,
  whenMs: number,
  signal: AbortSignal,
): Promise<readonly AuditEvent[]> {
  const granted = { tenant, name, allowed: true, except: "renew,use", limit: MOST_ENTRIES };
  const denied = { tenant, name, holder, allowed: false, action: "grant", limit: MOST_ENTRIES };
  const before = { untilMs: whenMs, order: "newest-first" };
  const after = { fromMs: whenMs, order: "oldest-first" };
  const answers = [
    { ...granted, ...before },
    { ...granted, ...after },
    { ...denied, ...before, fromMs: Math.max(0, whenMs - NEAR_MS) },
    { ...denied, ...after, untilMs: whenMs + LONGEST_WAIT_MS },
  ].map((query) => queryAudit(query, signal));
  return (await Promise.all(answers)).flat();
}
