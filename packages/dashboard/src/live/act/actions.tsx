/** What can be done to the lease that is shown. Each asks first, and says what will happen and what it needs. */
import { useState } from "preact/hooks";
import { Banner, Command, Dialog } from "../../ui/components.tsx";
import { messageOf, type Problem, ProblemError, post, type Who } from "../data/api.ts";
import type { LeaseDetail } from "../data/lease-detail.ts";
import { storeNow } from "../data/store-clock.ts";
import { isLive, shellWord, shortFence } from "../format.ts";
import { bodyOf, COMMANDS, type CommandSpec, REPAIR } from "./commands.ts";

export function Actions({ detail, who }: { detail: LeaseDetail; who: Who }) {
  const [open, setOpen] = useState<CommandSpec | null>(null);
  const [done, setDone] = useState("");
  const { lease } = detail;
  const specs = detail.state === "damaged" ? [REPAIR] : COMMANDS;
  const live = lease !== null && isLive(lease, storeNow());
  if (detail.state !== "damaged" && !live && open === null)
    return done === "" ? null : <Banner tone="good">{done}</Banner>;
  return (
    <div class="actions">
      {specs.map((spec) => {
        const isAllowed = who.actions.includes(spec.name);
        const title = isAllowed ? undefined : `This key does not allow '${spec.name}'`;
        return (
          <button
            key={spec.name}
            type="button"
            class={`button ${spec.isDangerous ? "danger" : ""}`}
            disabled={!isAllowed}
            title={title}
            onClick={() => setOpen(spec)}
          >
            {spec.label}
          </button>
        );
      })}
      {done !== "" && <span role="status">{done}</span>}
      {open !== null && (
        <CommandDialog
          spec={open}
          detail={detail}
          onClose={() => setOpen(null)}
          onDone={(text) => {
            setOpen(null);
            setDone(text);
            detail.refresh();
          }}
        />
      )}
    </div>
  );
}

interface DialogProps {
  readonly spec: CommandSpec;
  readonly detail: LeaseDetail;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}

function CommandDialog({ spec, detail, onClose, onDone }: DialogProps) {
  const { tenant, name } = detail;
  // The grant that was seen when the dialog opened is the one that is meant.
  const [lease] = useState(detail.lease);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [message, setMessage] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [seconds, setSeconds] = useState(0);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (field: string): string => String(form.get(field) ?? "");
    setBusy(true);
    setSeconds(Number(text("period") || "0"));
    try {
      const input = {
        token: text("token"),
        seconds: Number(text("period") || "0"),
        successor: text("successor"),
        approval: text("approval"),
      };
      const path = spec.name === "repair" ? "/v1/maintenance/repair" : `/v1/leases/${spec.name}`;
      await post(path, bodyOf(spec.name, { tenant, name }, lease, input));
      onDone(`Done: ${spec.name}.`);
    } catch (error) {
      setProblem(error instanceof ProblemError ? error.problem : null);
      setMessage(messageOf(error));
      setBusy(false);
    }
  };
  const has = (field: CommandSpec["fields"][number]): boolean => spec.fields.includes(field);
  return (
    <Dialog title={`${spec.label.replace("…", "")} ${name}`} onClose={onClose}>
      <form class="dialog-form" onSubmit={submit}>
        <p>{spec.effect(name, lease)}</p>
        <p class="muted">
          Needs a key that allows <code>{spec.name}</code> on this name.
        </p>
        {has("token") && (
          <label class="field">
            <span>Token of the grant</span>
            <input class="input mono" type="password" name="token" autocomplete="off" required />
          </label>
        )}
        {has("successor") && (
          <label class="field">
            <span>Successor</span>
            <input class="input" name="successor" required />
          </label>
        )}
        {has("period") && (
          <label class="field">
            <span>{spec.name === "break" ? "Period in seconds" : "The successor has so many seconds"}</span>
            <input class="input" type="number" name="period" min="1" max="86400" defaultValue="30" required />
          </label>
        )}
        {problem?.quorum !== undefined && (
          <MissingApprovals
            spec={spec}
            tenant={tenant}
            name={name}
            problem={problem}
            fence={lease === null ? "" : shortFence(lease.fence)}
            seconds={seconds}
          />
        )}
        {has("approval") && problem?.quorum !== undefined && (
          <label class="field">
            <span>Approvals: the content of the file</span>
            <textarea class="input" name="approval" rows={4} />
          </label>
        )}
        {message !== "" && (
          <Banner tone="bad" role="alert">
            {message}
          </Banner>
        )}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={`button ${spec.isDangerous ? "danger" : "primary"}`} disabled={isBusy}>
            {spec.label.replace("…", "")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Which approvals are missing, and what each signer signs. */
function MissingApprovals(props: {
  spec: CommandSpec;
  tenant: string;
  name: string;
  problem: Problem;
  fence: string;
  seconds: number;
}) {
  const { spec, tenant, name, problem, fence } = props;
  const { quorum } = problem;
  if (quorum === undefined) return null;
  const key = `${shellWord(name)}${tenant === "default" ? "" : ` --tenant ${shellWord(tenant)}`}`;
  const period = spec.name === "break" ? ` --period ${props.seconds}s` : "";
  const action = `${spec.name}${fence === "" ? "" : ` --fence ${fence}`} --tier ${quorum.tier}`;
  return (
    <div class="approvals">
      <p>
        <b>
          {quorum.received} of {quorum.required} approvals
        </b>{" "}
        ({quorum.tier}). Each signer signs exactly this, once: <i>{spec.name}</i> of <code>{name}</code>
        {fence === "" ? "" : `, only while the grant with fence ${fence} is current`}.
      </p>
      {quorum.failures.length > 0 && (
        <ul class="muted">
          {quorum.failures.map(({ code, signerId }) => (
            <li key={`${code}${signerId ?? ""}`}>
              {signerId ?? ""} {code}
            </li>
          ))}
        </ul>
      )}
      <Command
        text={`npx solehold approve ${key} --action ${action}${period} --file approvals.json --signer NAME --key KEY-FILE`}
      />
    </div>
  );
}
