/** A trace or an audit from a file. */
import type { Trace } from "@solehold/simulator/trace";
import { Command, Problem } from "../../ui/components.tsx";
import type { ChangeView } from "../state/use-view.ts";
import type { View } from "../state/view.ts";
import { Stage } from "./stage.tsx";

export interface FileViewProps {
  readonly trace: Trace | null;
  readonly error: unknown;
  readonly view: View;
  readonly change: ChangeView;
  readonly onFile: (file: File) => void;
}

export function FileView({ trace, error, view, change, onFile }: FileViewProps) {
  return (
    <article>
      <header class="view-head">
        <h2>{trace === null ? "Open a file" : trace.title}</h2>
        <label class="file-picker">
          <span>{trace === null ? "Choose a file" : "Another file"}</span>
          <input
            type="file"
            accept=".json,.jsonl,.ndjson,.txt,.log,application/json"
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              if (file !== undefined) onFile(file);
              // So that choosing the same file again is a change.
              event.currentTarget.value = "";
            }}
          />
        </label>
      </header>
      <Problem error={error} />
      {trace === null ? (
        <div class="panel drop">
          <p>Drop a file anywhere on this page. It stays in your browser.</p>
          <h3>A simulated run</h3>
          <Command text="npx solehold sim --seed 40 --trace run.json" />
          <h3>What really happened on a server</h3>
          <Command text="npx solehold audit export > audit.jsonl" />
        </div>
      ) : (
        <Stage trace={trace} view={view} change={change} script={null} next={null} busy={false} />
      )}
    </article>
  );
}
