/** What can be done to the lease that is shown. Each asks first, and says what will happen and what it needs. */
import { useState } from "preact/hooks";
import { describeFailure, durationInWords } from "solehold/browser";
import { Banner, Command, Dialog, type Fact, Facts, Field } from "../../ui/components.tsx";
import { useAction } from "../../ui/use-answer.ts";
import { messageOf, ProblemError, post, type QuorumFindings, type Who } from "../data/api.ts";
import type { LeaseDetail } from "../data/lease-detail.ts";
import { storeNow } from "../data/store-clock.ts";
import { isLive, shellWord, shortFence } from "../format.ts";
import { bodyOf, COMMANDS, type CommandInput, type CommandSpec, REPAIR } from "./commands.ts";

export function Actions({ detail, who }: { detail: LeaseDetail; who: Who }) {
  const [open, setOpen] = useState<CommandSpec | null>(null);
  const [done, setDone] = useState("");
  const { lease } = detail;
  const specs = detail.state === "damaged" ? [REPAIR] : COMMANDS;
  const forbidden = specs.map(({ name }) => name).filter((name) => !who.actions.includes(name));
  const live = lease !== null && isLive(lease, storeNow());
  if (detail.state !== "damaged" && !live && open === null)
    return done === "" ? null : <Banner tone="good">{done}</Banner>;
  return (
    <div class="actions">
      {specs.map((spec) => (
        <button
          key={spec.name}
          type="button"
          class={`button ${spec.isDangerous ? "danger" : ""}`}
          disabled={!who.actions.includes(spec.name)}
          onClick={() => setOpen(spec)}
        >
          {spec.label}
        </button>
      ))}
      {forbidden.length > 0 && <span class="muted">This key does not allow {forbidden.join(", ")}.</span>}
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
  const [asked, setAsked] = useState<CommandInput | null>(null);
  const { error, isBusy, run } = useAction(async (input: CommandInput) => {
    const path = spec.name === "repair" ? "/v1/maintenance/repair" : `/v1/leases/${spec.name}`;
    await post(path, bodyOf(spec.name, { tenant, name }, lease, input));
    onDone(`Done: ${spec.name}.`);
  });
  const quorum = error instanceof ProblemError ? error.problem.quorum : undefined;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (field: string): string => String(form.get(field) ?? "");
    const input = {
      token: text("token"),
      seconds: Number(text("period") || "0"),
      successor: text("successor"),
      approval: text("approval"),
    };
    setAsked(input);
    run(input);
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
          <Field label="Token of the grant">
            <input class="input mono" type="password" name="token" autocomplete="off" required />
          </Field>
        )}
        {has("successor") && (
          <Field label="Successor">
            <input class="input" name="successor" required />
          </Field>
        )}
        {has("period") && (
          <Field label={spec.name === "break" ? "Period in seconds" : "Seconds for the successor to take it"}>
            <input class="input" type="number" name="period" min="1" max="86400" defaultValue="30" required />
          </Field>
        )}
        {quorum !== undefined && (
          <>
            <MissingApprovals
              {...{ spec, tenant, name, quorum }}
              fence={lease === null ? "" : shortFence(lease.fence)}
              periodMs={spec.name === "break" ? (asked?.seconds ?? 0) * 1_000 : null}
            />
            <Field label="Approvals: the content of the file">
              <textarea class="input" name="approval" rows={4} />
            </Field>
          </>
        )}
        {error !== null && quorum === undefined && (
          <Banner tone="bad" role="alert">
            {messageOf(error)}
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

const SIGNER = "--file approvals.json --signer NAME --key KEY-FILE";

/** Which approvals are missing, and all that a signer consents to. */
function MissingApprovals(props: {
  spec: CommandSpec;
  tenant: string;
  name: string;
  quorum: QuorumFindings;
  /** Empty where no grant is meant. */
  fence: string;
  /** Null where the action has none. */
  periodMs: number | null;
}) {
  const { spec, tenant, name, fence, periodMs } = props;
  const { tier, received, required, failures } = props.quorum;
  const signed: readonly Fact[] = [
    ["action", spec.name],
    ["key", name],
    ["tenant", tenant],
    ...(fence === "" ? [] : [["only while", `the grant with fence ${fence} is current`] as const]),
    ...(periodMs === null ? [] : [["period", durationInWords(periodMs)] as const]),
    ["tier", tier],
    ["request", "a random number, the same for all signers"],
    ["valid", "from the signature, for an hour or as long as the signer says"],
  ];
  const command = [
    `npx solehold approve ${shellWord(name)}`,
    ...(tenant === "default" ? [] : [`--tenant ${shellWord(tenant)}`]),
    `--action ${spec.name}`,
    ...(fence === "" ? [] : [`--fence ${fence}`]),
    `--tier ${tier}`,
    ...(periodMs === null ? [] : [`--period ${periodMs / 1_000}s`]),
    SIGNER,
  ];
  return (
    <div class="approvals">
      <p role="alert">
        <b>
          {received} of {required} approvals
        </b>
        . Each signer signs exactly this, and it works once:
      </p>
      <Facts facts={signed} kind="lines" />
      <ul class="muted">
        {failures
          .filter(({ kind }) => kind !== "BelowQuorum")
          .map((failure) => (
            <li key={describeFailure(failure)}>{describeFailure(failure)}</li>
          ))}
      </ul>
      <p class="muted">The first signer runs:</p>
      <Command text={command.join(" ")} />
      {required > 1 && (
        <>
          <p class="muted">Each further one, with the file of the first:</p>
          <Command text={`npx solehold approve ${SIGNER}`} />
        </>
      )}
    </div>
  );
}
