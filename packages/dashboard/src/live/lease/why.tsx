/** "Why did my job not run?": a time, perhaps a holder, and the audit answers in a sentence. */

import { useState } from "preact/hooks";
import { decisionInWords, type WhyAnswer, whyNotRun } from "solehold/browser";
import { Field, Panel } from "../../ui/components.tsx";
import { useAnswer } from "../../ui/use-answer.ts";
import { messageOf, queryAudit } from "../data/api.ts";
import { localMs, storeNow } from "../data/store-clock.ts";
import { timeOf } from "../format.ts";
import { setParams } from "../router.ts";

/** Entries are read from this much before the time to this much after it. */
const AROUND_MS = 24 * 3_600_000;

export interface WhyProps {
  readonly tenant: string;
  readonly name: string;
  /** From the address: an ISO 8601 instant; empty for now. */
  readonly at: string;
  readonly holder: string;
  readonly holders: readonly string[];
}

export function Why({ tenant, name, at, holder, holders }: WhyProps) {
  /** How often: the same question may have another answer later. */
  const [asked, setAsked] = useState(at === "" && holder === "" ? 0 : 1);
  const atMs = at === "" ? null : Date.parse(at);
  const { answer, error } = useAnswer(
    async (signal): Promise<WhyAnswer | null> => {
      if (asked === 0) return null;
      const whenMs = atMs ?? storeNow();
      const around = {
        fromMs: Math.max(0, Math.floor(whenMs - AROUND_MS)),
        untilMs: Math.ceil(whenMs + AROUND_MS),
      };
      const query = { tenant, name, ...around, except: "renew,use", order: "newest-first", limit: 1_000 };
      const question = { atMs: whenMs, ...(holder === "" ? {} : { holder }) };
      return whyNotRun(await queryAudit(query, signal), question, timeOf);
    },
    [tenant, name, atMs, holder, asked],
  );
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const when = String(form.get("at") ?? "");
    setParams({
      at: when === "" ? "" : new Date(when).toISOString(),
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
            defaultValue={localInput(atMs ?? storeNow())}
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
            <p class="answer pad">{answer.answer}</p>
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

/** As the input wants it: local time without a zone. */
function localInput(storeMs: number): string {
  const at = new Date(localMs(storeMs));
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
