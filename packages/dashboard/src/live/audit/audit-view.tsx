/** The audit: search, export, and the proof of the chain, which names the first entry that is not proven. */

import { useEffect, useState } from "preact/hooks";
import { type AuditEntry, decisionInWords, REASONS } from "solehold/browser";
import { Banner } from "../../ui/components.tsx";
import { get, messageOf, type Query, queryAudit, type Who } from "../data/api.ts";
import { counted, grouped, isoOf, timeOf } from "../format.ts";
import { leaseHref, type Params, setParams } from "../router.ts";
import { exportAudit, MOST_EXPORTED, save } from "./export.ts";

const PAGE = 200;
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

interface Proof {
  readonly ok: boolean;
  readonly entries?: number;
  readonly head?: { readonly sequence: number; readonly hash: string };
  readonly entry?: number;
  readonly message?: string;
}

export function AuditView({ params, who }: { params: Params; who: Who }) {
  const [entries, setEntries] = useState<readonly AuditEntry[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  const { name = "", holder = "", action = "", reason = "", verdict = "" } = params;
  const tenant = params.tenant ?? who.tenants?.[0] ?? "default";
  const allowed = verdict === "" ? undefined : verdict === "allowed";
  const limit = Number(params.limit ?? PAGE);
  const kinds = action === "" ? { except: QUIET } : action === EVERY ? {} : { action };
  const filter = { tenant, name, holder, reason, allowed, ...kinds };
  useEffect(() => {
    const abort = new AbortController();
    queryAudit({ ...filter, limit: Math.min(1_000, limit), order: "newest-first" }, abort.signal).then(
      (found) => {
        setEntries(found);
        setError(null);
      },
      (failure: unknown) => {
        if (!abort.signal.aborted) setError(failure);
      },
    );
    return () => abort.abort();
  }, [JSON.stringify(filter), limit, round]);
  const text = (field: string) => (event: { currentTarget: HTMLInputElement | HTMLSelectElement }) =>
    setParams({ [field]: event.currentTarget.value });
  return (
    <main class="view">
      <div class="view-head">
        <h1>Audit</h1>
        <div class="actions">
          <button type="button" class="button" onClick={() => setRound(round + 1)}>
            Refresh
          </button>
          <Export filter={filter} onFailure={setError} />
        </div>
      </div>
      <Verify mayVerify={who.actions.includes("audit") && who.tenants === null} />
      <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Filter">
        <label class="field">
          <span>Key</span>
          <input
            class="input mono"
            type="search"
            value={name}
            onChange={text("name")}
            placeholder="reports/nightly"
          />
        </label>
        <label class="field">
          <span>Holder</span>
          <input
            class="input"
            type="search"
            value={holder}
            onChange={text("holder")}
            placeholder="worker-1"
          />
        </label>
        <Choice
          label="Action"
          usual="all but renewals"
          value={action}
          values={ACTIONS}
          onChange={text("action")}
        />
        <Choice label="Verdict" value={verdict} values={["allowed", "denied"]} onChange={text("verdict")} />
        <Choice label="Reason" value={reason} values={Object.keys(REASONS)} onChange={text("reason")} />
      </form>
      {error !== null && (
        <Banner tone="bad" role="alert">
          The audit cannot be shown: {messageOf(error)}.
        </Banner>
      )}
      <p class="count muted" role="status">
        {entries === null ? "Loading…" : `${counted(entries.length, "entry", "entries")}, the newest first`}
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
      {entries !== null && entries.length === limit && limit < 1_000 && (
        <button type="button" class="button" onClick={() => setParams({ limit: String(limit + PAGE) })}>
          Show more
        </button>
      )}
    </main>
  );
}

/** Exports what the filter matches, and says how far it is and whether that was all. */
function Export({ filter, onFailure }: { filter: Query; onFailure: (error: unknown) => void }) {
  const [said, setSaid] = useState("");
  const [isBusy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    const { file, entries, isCut } = await exportAudit(filter, (count) => setSaid(`${grouped(count)}…`));
    save(file, "audit.jsonl");
    const all = counted(entries, "entry", "entries");
    setSaid(isCut ? `only the oldest ${all}: for more, solehold audit export` : `${all} exported`);
  };
  return (
    <>
      <span class="muted" role="status">
        {said}
      </span>
      <button
        type="button"
        class="button"
        disabled={isBusy}
        onClick={() =>
          void run()
            .catch(onFailure)
            .finally(() => setBusy(false))
        }
        title={`All that match, up to ${grouped(MOST_EXPORTED)}, as lines of JSON`}
      >
        Export
      </button>
    </>
  );
}

function Choice(props: {
  label: string;
  /** What no choice means. */
  usual?: string;
  value: string;
  values: readonly string[];
  onChange: (event: { currentTarget: HTMLSelectElement }) => void;
}) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select class="input" value={props.value} onChange={props.onChange}>
        <option value="">{props.usual ?? "any"}</option>
        {props.values.map((value) => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
}

function Verify({ mayVerify }: { mayVerify: boolean }) {
  const [proof, setProof] = useState<Proof | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const run = (): void => {
    setBusy(true);
    setFailure(null);
    get<Proof>("/v1/audit/verify")
      .then(setProof, setFailure)
      .finally(() => setBusy(false));
  };
  const tone = failure !== null || proof?.ok === false ? "bad" : proof?.ok === true ? "good" : "accent";
  return (
    <Banner tone={tone}>
      <button
        type="button"
        class="button"
        onClick={run}
        disabled={isBusy || !mayVerify}
        title={mayVerify ? undefined : "Needs a key that allows 'audit' in all tenants"}
      >
        {isBusy ? "Verifying…" : "Verify chain"}
      </button>
      <span>
        {failure !== null && messageOf(failure)}
        {failure === null &&
          proof === null &&
          "Proves that no entry was changed, dropped, inserted or moved."}
        {proof?.ok === true &&
          `All ${grouped(proof.entries ?? 0)} entries are proven; the last is ${proof.head?.sequence}.`}
        {proof?.ok === false && `Entry ${proof.entry} is not proven: ${proof.message}.`}
      </span>
    </Banner>
  );
}
