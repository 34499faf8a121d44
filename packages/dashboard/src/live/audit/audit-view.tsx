/** The audit: search, export, and the proof of the chain, which leads to the first entry that is not proven. */

import { useState } from "preact/hooks";
import { type AuditEntry, decisionInWords, REASONS } from "solehold/browser";
import { Select } from "../../ui/components.tsx";
import { useAction, useAnswer } from "../../ui/use-answer.ts";
import { Failed, TenantFilter, TextFilter, TimeFilter } from "../components.tsx";
import { get, messageOf, type Query, queryAudit, type Who } from "../data/api.ts";
import { counted, grouped, isoOf, reasonLabel, timeOf } from "../format.ts";
import { useWide } from "../hooks.ts";
import { leaseHref, type Params, setParams } from "../router.ts";
import { exportAudit, MOST_EXPORTED, save } from "./export.ts";
import { type Proof, Verify } from "./verify.tsx";

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

const DENIALS = Object.keys(REASONS).filter((reason) => !reason.startsWith("OK_"));

export interface AuditViewProps {
  readonly tenant: string;
  readonly params: Params;
  readonly who: Who;
}

export function AuditView({ tenant, params, who }: AuditViewProps) {
  const [round, setRound] = useState(0);
  const { name = "", holder = "", action = "", reason = "", verdict = "", from, until } = params;
  /** The entry that is looked at with its neighbours, whatever the filter says; null for none. */
  const pointed = params.entry === undefined ? null : Number(params.entry);
  const allowed = verdict === "" ? undefined : verdict === "allowed";
  const limit = Math.min(MOST_SHOWN, Number(params.limit ?? PAGE));
  const kinds = action === "" ? { except: QUIET } : action === EVERY ? {} : { action };
  const time = { fromMs: instantOf(from), untilMs: instantOf(until) };
  const filter = { tenant, name, holder, reason, allowed, ...time, ...kinds };
  const query = pointed === null ? { ...filter, limit, order: "newest-first" } : around(pointed);
  const { answer: entries, error } = useAnswer(
    async (signal) => newestFirst(await queryAudit(query, signal)),
    [JSON.stringify(query), round],
  );
  const verification = useAction(() => get<Proof>("/v1/audit/verify"));
  const proof = verification.error === null ? verification.answer : null;
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
      <Verify {...verification} mayVerify={who.actions.includes("audit") && who.tenants === null} />
      {pointed === null && <Filters {...{ tenant, params, who }} />}
      <Failed what="The audit" error={error} />
      <p class="count muted" role="status">
        {entries === null ? "Loading…" : shownInWords(entries.length, pointed)}
        {pointed !== null && (
          <button type="button" class="button quiet" onClick={() => setParams({ entry: "" })}>
            Back to the search
          </button>
        )}
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
                <tr
                  key={entry.sequence}
                  data-allowed={entry.allowed}
                  data-wrong={proof?.ok === false && proof.entry === entry.sequence}
                >
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
      {pointed === null && entries?.length === limit && limit < MOST_SHOWN && (
        <button type="button" class="button" onClick={() => setParams({ limit: String(limit + PAGE) })}>
          Show more
        </button>
      )}
    </main>
  );
}

function Filters(props: AuditViewProps) {
  const { params } = props;
  const isWide = useWide();
  const isUsed = FURTHER.some((name) => params[name] !== undefined);
  return (
    <form class="filters rows" onSubmit={(event) => event.preventDefault()} aria-label="Filter">
      <TextFilter label="Key" name="name" placeholder="reports/nightly" params={params} isKey onEnter />
      {isWide ? (
        <FurtherFilters {...props} />
      ) : (
        <details class="more-filters" open={isUsed}>
          <summary>More filters</summary>
          <div class="filters rows">
            <FurtherFilters {...props} />
          </div>
        </details>
      )}
    </form>
  );
}

const FURTHER = ["holder", "from", "until", "action", "verdict", "reason"];

function FurtherFilters({ tenant, params, who }: AuditViewProps) {
  const choose = (field: string) => (value: string) => setParams({ [field]: value });
  return (
    <>
      <TextFilter label="Holder" name="holder" placeholder="worker-1" params={params} onEnter />
      <TimeFilter label="From" name="from" params={params} />
      <TimeFilter label="Until" name="until" params={params} />
      <Select
        label="Action"
        usual="all but renewals"
        value={params.action ?? ""}
        values={ACTIONS}
        onChange={choose("action")}
      />
      <Select
        label="Verdict"
        usual="any"
        value={params.verdict ?? ""}
        values={["allowed", "denied"]}
        onChange={choose("verdict")}
      />
      <Select
        label="Denied because"
        usual="any"
        value={params.reason ?? ""}
        values={DENIALS}
        labelOf={reasonLabel}
        onChange={choose("reason")}
      />
      <TenantFilter tenant={tenant} who={who} />
    </>
  );
}

function instantOf(iso: string | undefined): number | undefined {
  return iso === undefined ? undefined : Date.parse(iso);
}

/** So many entries before an entry and after it. */
const NEIGHBOURS = 3;

function around(entry: number): Query {
  return { tenant: "*", after: Math.max(0, entry - NEIGHBOURS - 1), limit: 2 * NEIGHBOURS + 1 };
}

function newestFirst(entries: readonly AuditEntry[]): readonly AuditEntry[] {
  return entries.toSorted((a, b) => b.sequence - a.sequence);
}

function shownInWords(count: number, pointed: number | null): string {
  if (pointed !== null) return `Entry ${pointed} and those beside it, of all tenants`;
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
