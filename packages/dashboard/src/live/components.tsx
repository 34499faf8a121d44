/** Components that several live views have. */
import { Banner, Field, Select } from "../ui/components.tsx";
import { messageOf, type Who } from "./data/api.ts";
import type { StreamState } from "./data/events.ts";
import { isoOfInput, timeInput } from "./format.ts";
import { type Params, setParams } from "./router.ts";

export function ConnectionLost({ stream }: { stream: StreamState }) {
  if (stream !== "reconnecting") return null;
  return <Banner tone="warn">The connection was lost. What you see may be out of date; reconnecting…</Banner>;
}

/** Null as `error`: nothing to say. */
export function Failed({ what, error }: { what: string; error: unknown }) {
  if (error === null) return null;
  return (
    <Banner tone="bad" role="alert">
      {what} cannot be shown: {messageOf(error)}.
    </Banner>
  );
}

/** A text of the filter; `onEnter`: each letter would ask the server again. */
export function TextFilter(props: {
  label: string;
  name: string;
  params: Params;
  placeholder: string;
  isKey?: boolean;
  onEnter?: boolean;
}) {
  const { label, name, params, placeholder, isKey = false, onEnter = false } = props;
  const set = ({ currentTarget }: { currentTarget: HTMLInputElement }): void =>
    setParams({ [name]: currentTarget.value });
  return (
    <Field label={label}>
      <input
        class={`input ${isKey ? "mono" : ""}`}
        type="search"
        value={params[name] ?? ""}
        {...(onEnter ? { onChange: set } : { onInput: set })}
        placeholder={placeholder}
      />
    </Field>
  );
}

/** An instant of the filter. */
export function TimeFilter({ label, name, params }: { label: string; name: string; params: Params }) {
  const at = params[name] ?? "";
  return (
    <Field label={label}>
      <input
        class="input"
        type="datetime-local"
        value={at === "" ? "" : timeInput(Date.parse(at))}
        onChange={({ currentTarget }) => setParams({ [name]: isoOfInput(currentTarget.value) })}
      />
    </Field>
  );
}

export function TenantFilter({ tenant, who }: { tenant: string; who: Who }) {
  const set = (value: string): void => setParams({ tenant: value });
  if (who.tenants !== null)
    return <Select label="Tenant" values={who.tenants} value={tenant} onChange={set} />;
  return (
    <Field label="Tenant">
      <input class="input" value={tenant} onChange={(event) => set(event.currentTarget.value.trim())} />
    </Field>
  );
}
