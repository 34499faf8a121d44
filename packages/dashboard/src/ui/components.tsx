/** Basic components of all pages. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export type Tone = "good" | "warn" | "bad" | "accent" | "ended";

export function Status({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class="status" data-tone={tone}>
      {children}
    </span>
  );
}

/** A part of a page with a title, and beside that what belongs to the whole part. */
export function Panel(props: {
  id: string;
  title: string;
  kind?: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  const { id, title, kind = "", aside, children } = props;
  return (
    <section class={`panel ${kind}`} aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

export type Fact = readonly [name: string, value: string];

/** Names and values, one line each; "across": one beside the other. */
export function Facts({ facts, kind }: { facts: readonly Fact[]; kind: "lines" | "wide lines" | "across" }) {
  return (
    <dl class={`facts ${kind}`}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd title={value}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  );
}

/** A choice of one from a list; `usual` is what the empty value means, where that may be chosen. `labelOf`: where people read another word. */
export function Select(props: {
  label: string;
  values: readonly string[];
  value: string;
  usual?: string;
  labelOf?: (value: string) => string;
  onChange: (value: string) => void;
}) {
  const { labelOf = (value: string) => value } = props;
  return (
    <Field label={props.label}>
      <select
        class="input"
        value={props.value}
        onChange={({ currentTarget }) => props.onChange(currentTarget.value)}
      >
        {props.usual !== undefined && <option value="">{props.usual}</option>}
        {props.values.map((value) => (
          <option key={value} value={value}>
            {labelOf(value)}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** `role` "status" is read out when it appears; "alert" at once. */
export function Banner({
  tone,
  role = "status",
  children,
}: {
  tone: Tone;
  role?: "status" | "alert";
  children: ComponentChildren;
}) {
  return (
    <div class="banner" data-tone={tone} role={role}>
      {children}
    </div>
  );
}

/** Why something did not work; nothing where it did. */
export function Problem({ error }: { error: unknown }) {
  if (error === null) return null;
  return (
    <Banner tone="bad" role="alert">
      {error instanceof Error ? error.message : String(error)}
    </Banner>
  );
}

/** A command that can be copied. */
export function Command({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => undefined,
    );
  };
  return (
    <div class="command">
      <code>{text}</code>
      <button type="button" class="button quiet" onClick={copy}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}

export interface Choice<Value extends string> {
  readonly value: Value;
  readonly label: string;
}

export function Segmented<Value extends string>(props: {
  label: string;
  choices: readonly Choice<Value>[];
  value: Value;
  onChange: (value: Value) => void;
}) {
  return (
    <fieldset class="segmented plain" aria-label={props.label}>
      {props.choices.map(({ value, label }) => (
        <button
          type="button"
          key={value}
          aria-pressed={value === props.value}
          onClick={() => props.onChange(value)}
        >
          {label}
        </button>
      ))}
    </fieldset>
  );
}

/** A modal dialog: the browser keeps the focus inside and closes it on Escape. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    element.current?.showModal();
    return () => opener?.focus?.();
  }, []);
  return (
    <dialog ref={element} aria-label={title} onClose={onClose}>
      <div class="dialog">
        <h1>{title}</h1>
        {children}
      </div>
    </dialog>
  );
}
