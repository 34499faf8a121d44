/** Asks for an API key. It stays in this tab, and goes nowhere but to this server. */
import { useState } from "preact/hooks";
import { Command, Field } from "../ui/components.tsx";

export function KeyPrompt({ refused, onKey }: { refused: boolean; onKey: (key: string) => void }) {
  const [key, setKey] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (key.trim() !== "") onKey(key.trim());
  };
  return (
    <main class="view">
      <form class="key-prompt panel" onSubmit={submit}>
        <h1>This server asks for an API key</h1>
        <Field label="API key">
          <input
            class="input mono"
            type="password"
            autocomplete="off"
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
            placeholder="shk_…"
            aria-invalid={refused}
            aria-describedby="key-note"
          />
        </Field>
        <p id="key-note" class={refused ? "bad" : "muted"} role={refused ? "alert" : undefined}>
          {refused
            ? "The server does not know this key. It may have been revoked."
            : "It is kept until this tab is closed, and sent to this server only."}
        </p>
        <button type="submit" class="button primary">
          Continue
        </button>
        <p class="muted">No key yet? On the server's machine:</p>
        <Command text="npx solehold keys add dashboard --tenants '*' --actions read,audit,metrics" />
      </form>
    </main>
  );
}
