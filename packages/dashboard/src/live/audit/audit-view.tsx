/** The audit: search, export, and the proof of the chain, which names the first entry that is not proven. */

import { useState } from "preact/hooks";
import { decisionInWords, REASONS } from "solehold/browser";
import { Banner, Select } from "../../ui/components.tsx";
import { useAction, useAnswer } from "../../ui/use-answer.ts";
import { Failed, TenantFilter, TextFilter } from "../components.tsx";
import { get, messageOf, type Query, queryAudit, type Who } from "../data/api.ts";
import { counted, grouped, isoOf, timeOf } from "../format.ts";
import { leaseHref, type Params, setParams } from "../router.ts";
import { exportAudit, MOST_EXPORTED, save } from "./export.ts";

const PAGE = 200;
const MOST_SHOWN = 1_000;
/** Renewals are most of a trail and say least: they are shown when they are asked for. */
const QUIET = "renew,use";
const EVERY = "every";
const ACTIONS = [
  EVERY,
  "grant",
  "renew",
  "release",
  "use",
  "resume",
  "handoff",
  "revoke",
  "break",
  "expire",
  "repair",
];

type Proof =
  | { readonly ok: true; readonly entries: number; readonly head: { readonly sequence: number } }
  | { readonly ok: false; readonly entry: number; readonly message: string };

export function AuditView({ tenant, params, who }: { tenant: string; params: Params; who: Who }) {
  const [round, setRound] = useState(0);
  const { name = "", holder = "", action = "", reason = "", verdict = "" } = params;
  const allowed = verdict === "" ? undefined : verdict === "allowed";
  const limit = Math.min(MOST_SHOWN, Number(params.limit ?? PAGE));
  const kinds = action === "" ? { except: QUIET } : action === EVERY ? {} : { action };
  const filter = { tenant, name, holder, reason, allowed, ...kinds };
  const { answer: entries, error } = useAnswer(
    (signal) => queryAudit({ ...filter, limit, order: "newest-first" }, signal),
    [JSON.stringify(filter), limit, round],
  );
  const choose = (field: string) => (value: string) => setParams({ [field]: value });
  return (
    <main class="view">
      <div class="view-head">
        <h1>Audit</h1>
        <div class="actions">
          <button type="button" class="button" onClick={() => setRound(round + 1)}>
            Refresh
          </button>
          <Export filter={filter} />
        </div>
      </div>
      <Verify mayVerify={who.actions.includes("audit") && who.tenants === null} />
      <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Filter">
        <TextFilter label="Key" name="name" placeholder="reports/nightly" params={params} isKey onEnter />
        <TextFilter label="Holder" name="holder" placeholder="worker-1" params={params} onEnter />
        <Select
          label="Action"
          usual="all but renewals"
          value={action}
          values={ACTIONS}
          onChange={choose("action")}
        />
        <Select
          label="Verdict"
          usual="any"
          value={verdict}
          values={["allowed", "denied"]}
          onChange={choose("verdict")}
        />
        <Select
          label="Reason"
          usual="any"
          value={reason}
          values={Object.keys(REASONS)}
          onChange={choose("reason")}
        />
        <TenantFilter tenant={tenant} who={who} />
      </form>
      <Failed what="The audit" error={error} />
      <p class="count muted" role="status">
        {entries === null ? "Loading…" : shownInWords(entries.length)}
      </p>
      {entries !== null && entries.length > 0 && (
        <div class="panel scroll-x" tabIndex={0} role="region" aria-label="Entries">
          <table class="entries">
            <thead>
              <tr>
                <th scope="col">No.</th>
                <th scope="col">Time</th>
                <th scope="col">Key</th>
                <th scope="col">Holder</th>
                <th scope="col">Action</th>
                <th scope="col">Decision</th>
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={entry.sequence} data-allowed={entry.allowed}>
                  <td class="numeric muted">{entry.sequence}</td>
                  <td class="numeric" title={isoOf(entry.at)}>
                    {timeOf(entry.at)}
                  </td>
                  <td class="mono">
                    <a href={leaseHref(entry.tenant, entry.key)}>{entry.key}</a>
                  </td>
                  <td>{entry.holder ?? ""}</td>
                  <td>{entry.action}</td>
                  <td>{decisionInWords(entry)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {entries !== null && entries.length === limit && limit < MOST_SHOWN && (
        <button type="button" class="button" onClick={() => setParams({ limit: String(limit + PAGE) })}>
          Show more
        </button>
      )}
    </main>
  );
}

function shownInWords(count: number): string {
  return count === 0 ? "No entry matches" : `${counted(count, "entry", "entries")}, the newest first`;
}

/** Exports what the filter matches, and says how far it is and whether that was all. */
function Export({ filter }: { filter: Query }) {
  const [said, setSaid] = useState("");
  const { error, isBusy, run } = useAction(async () => {
    const { file, entries, isCut } = await exportAudit(filter, (count) => setSaid(`${grouped(count)}…`));
    save(file, "audit.jsonl");
    const all = counted(entries, "entry", "entries");
    setSaid(isCut ? `only the oldest ${all}: for more, solehold audit export` : `${all} exported`);
  });
  return (
    <>
      <span class={error === null ? "muted" : "bad"} role="status">
        {error === null ? said : `not exported: ${messageOf(error)}`}
      </span>
      <button
        type="button"
        class="button"
        disabled={isBusy}
        onClick={() => run()}
        title={`All that match, up to ${grouped(MOST_EXPORTED)}, as lines of JSON`}
      >
        Export
      </button>
    </>
  );
}

function Verify({ mayVerify }: { mayVerify: boolean }) {
  const { answer: proof, error, isBusy, run } = useAction(() => get<Proof>("/v1/audit/verify"));
  const tone = error !== null || proof?.ok === false ? "bad" : proof?.ok === true ? "good" : "accent";
  return (
    <Banner tone={tone}>
      <button
        type="button"
        class="button"
        onClick={() => run()}
        disabled={isBusy || !mayVerify}
        title={mayVerify ? undefined : "Needs a key that allows 'audit' in all tenants"}
      >
        {isBusy ? "Verifying…" : "Verify chain"}
      </button>
      <span>{error === null ? proofInWords(proof) : messageOf(error)}</span>
    </Banner>
  );
}

function proofInWords(proof: Proof | null): string {
  if (proof === null) return "Proves that no entry was changed, dropped, inserted or moved.";
  return proof.ok
    ? `All ${grouped(proof.entries)} entries are proven; the last is ${proof.head.sequence}.`
    : `Entry ${proof.entry} is not proven: ${proof.message}.`;
}
