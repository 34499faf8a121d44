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
      {/* It scrolls sideways where it does not fit, so a keyboard must reach it. */}
      <code tabIndex={0}>{text}</code>
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
