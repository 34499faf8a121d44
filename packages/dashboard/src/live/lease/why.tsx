/** "Why did my job not run?": a time, perhaps a holder, and the audit answers in a sentence. */

import { useEffect, useState } from "preact/hooks";
import { type AuditEvent, decisionInWords, whyNotRun } from "solehold/browser";
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
  const [result, setResult] = useState<{ answer: string; because: readonly AuditEvent[] } | null>(null);
  const [asked, setAsked] = useState(at !== "" || holder !== "");
  const atMs = at === "" ? null : Date.parse(at);
  useEffect(() => {
    if (!asked) return undefined;
    const abort = new AbortController();
    const whenMs = atMs ?? storeNow();
    const query = { tenant, name, except: "renew,use", order: "newest-first", limit: 1_000 };
    queryAudit(
      {
        ...query,
        fromMs: Math.max(0, Math.floor(whenMs - AROUND_MS)),
        untilMs: Math.ceil(whenMs + AROUND_MS),
      },
      abort.signal,
    ).then(
      (entries) => {
        const question = { atMs: whenMs, ...(holder === "" ? {} : { holder }) };
        setResult(whyNotRun(entries, question, timeOf));
      },
      (error: unknown) => {
        if (!abort.signal.aborted)
          setResult({ answer: `It cannot be answered: ${messageOf(error)}.`, because: [] });
      },
    );
    return () => abort.abort();
  }, [tenant, name, atMs, holder, asked]);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const when = String(form.get("at") ?? "");
    setParams({
      at: when === "" ? "" : new Date(when).toISOString(),
      holder: String(form.get("holder") ?? "").trim(),
    });
    setAsked(true);
  };
  return (
    <section class="panel why" aria-labelledby="why">
      <h2 id="why">Why did my job not run?</h2>
      <form onSubmit={submit}>
        <label class="field">
          <span>It should have run at</span>
          <input
            class="input"
            type="datetime-local"
            name="at"
            step="1"
            defaultValue={localInput(atMs ?? storeNow())}
          />
        </label>
        <label class="field">
          <span>Holder (any when empty)</span>
          <input class="input" name="holder" list="holders" defaultValue={holder} placeholder="worker-1" />
          <datalist id="holders">
            {holders.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </label>
        <button type="submit" class="button">
          Ask
        </button>
      </form>
      <div role="status">
        {result !== null && (
          <>
            <p class="answer">{result.answer}</p>
            {result.because.length > 0 && (
              <ul class="because muted">
                {result.because.map((event) => (
                  <li key={`${event.at}${event.traceId}`}>
                    {timeOf(event.at)} {event.holder}: {decisionInWords(event)}
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </div>
    </section>
  );
}

/** As the input wants it: local time without a zone. */
function localInput(storeMs: number): string {
  const at = new Date(localMs(storeMs));
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
