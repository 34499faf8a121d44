/** The faults as a form: for those who would rather type than drag, and to add and remove. */
import type { Script, ScriptFault, ScriptFaultKind } from "@solehold/simulator";
import { useState } from "preact/hooks";
import { faultName } from "../state/words.ts";

export interface FaultEditorProps {
  readonly script: Script;
  readonly faults: readonly ScriptFault[];
  readonly changed: boolean;
  /** Where a new one begins. */
  readonly atMs: number;
  readonly onChange: (faults: readonly ScriptFault[]) => void;
  readonly onReset: () => void;
}

interface Kind {
  readonly label: string;
  readonly make: (on: string) => Omit<ScriptFault, "atMs">;
  readonly on: "nodes" | "store" | "all";
}

const KINDS: Readonly<Record<string, Kind>> = {
  pause: { label: "stop", on: "all", make: (on) => ({ kind: "pause", on, forMs: 5_000 }) },
  suspend: { label: "sleep", on: "nodes", make: (on) => ({ kind: "suspend", on, forMs: 8_000 }) },
  crash: { label: "crash", on: "nodes", make: (on) => ({ kind: "crash", on, forMs: 3_000 }) },
  cut: { label: "cut off", on: "nodes", make: (on) => ({ kind: "cut", on, forMs: 6_000 }) },
  replies: {
    label: "lose replies",
    on: "nodes",
    make: (on) => ({ kind: "cut", on, way: "replies", forMs: 3_000 }),
  },
  slow: { label: "hold up the link", on: "nodes", make: (on) => ({ kind: "slow", on, forMs: 4_000 }) },
  writes: {
    label: "hold up writes",
    on: "nodes",
    make: (on) => ({ kind: "slow", on, way: "writes", forMs: 8_000 }),
  },
  rate: {
    label: "slow clock",
    on: "all",
    make: (on) => ({ kind: "clock-rate", on, forMs: 20_000, amount: 0.9 }),
  },
  step: {
    label: "set the wall clock back",
    on: "nodes",
    make: (on) => ({ kind: "wall-step", on, forMs: 0, amount: -5_000 }),
  },
  lost: {
    label: "crash and lose writes",
    on: "store",
    make: (on) => ({ kind: "lost-writes", on, forMs: 2_000, amount: 3 }),
  },
};

const UNITS: Partial<Record<ScriptFaultKind, string>> = {
  "clock-rate": "rate",
  "wall-step": "by ms",
  "clock-jump": "by ms",
  "lost-writes": "writes",
};

export function FaultEditor({ script, faults, changed, atMs, onChange, onReset }: FaultEditorProps) {
  const replace = (index: number, fault: ScriptFault): void =>
    onChange(faults.map((each, position) => (position === index ? fault : each)));
  return (
    <section class="panel faults-form">
      <h3>
        Faults
        {changed && (
          <button type="button" class="button quiet" onClick={onReset}>
            as they were
          </button>
        )}
      </h3>
      <p class="muted hint">
        Drag them in the picture, or change them here. The run is played again at once.
      </p>
      {faults.length === 0 && <p class="muted">Nothing goes wrong.</p>}
      <ul>
        {faults.map((fault, index) => (
          <FaultRow
            key={index}
            fault={fault}
            onChange={(next) => replace(index, next)}
            onRemove={() => onChange(faults.filter((_, position) => position !== index))}
          />
        ))}
      </ul>
      <AddFault
        script={script}
        onAdd={(fault) => onChange([...faults, { ...fault, atMs: Math.round(atMs / 100) * 100 }])}
      />
    </section>
  );
}

function FaultRow({
  fault,
  onChange,
  onRemove,
}: {
  readonly fault: ScriptFault;
  readonly onChange: (fault: ScriptFault) => void;
  readonly onRemove: () => void;
}) {
  const name = `${fault.on}: ${faultName(fault)}`;
  const unit = UNITS[fault.kind];
  return (
    <li>
      <span class="fault-name">{name}</span>
      <NumberField
        label="from s"
        of={name}
        value={fault.atMs / 1_000}
        least={0}
        onChange={(at) => onChange({ ...fault, atMs: at * 1_000 })}
      />
      {fault.forMs > 0 && (
        <NumberField
          label="for s"
          of={name}
          value={fault.forMs / 1_000}
          least={0.1}
          onChange={(length) => onChange({ ...fault, forMs: length * 1_000 })}
        />
      )}
      {unit !== undefined && (
        <NumberField
          label={unit}
          of={name}
          value={fault.amount ?? 0}
          least={unit === "rate" ? 0.1 : unit === "writes" ? 1 : -3_600_000}
          step={unit === "rate" ? 0.01 : unit === "writes" ? 1 : 500}
          onChange={(amount) => onChange({ ...fault, amount })}
        />
      )}
      <button type="button" class="button remove" onClick={onRemove} aria-label={`Remove ${name}`}>
        ✕
      </button>
    </li>
  );
}

function NumberField(props: {
  readonly label: string;
  readonly of: string;
  readonly value: number;
  readonly least: number;
  readonly step?: number;
  readonly onChange: (value: number) => void;
}) {
  const { label, of, value, least, step = 0.1, onChange } = props;
  return (
    <label>
      {label}
      <input
        class="input"
        type="number"
        aria-label={`${of}, ${label}`}
        value={Number(value.toFixed(3))}
        min={least}
        step={step}
        onChange={(event) => {
          const typed = event.currentTarget.valueAsNumber;
          if (Number.isFinite(typed)) onChange(Math.max(least, typed));
        }}
      />
    </label>
  );
}

function AddFault({
  script,
  onAdd,
}: {
  readonly script: Script;
  readonly onAdd: (fault: Omit<ScriptFault, "atMs">) => void;
}) {
  const [kindName, setKind] = useState("cut");
  const [chosen, setOn] = useState(script.nodes[0] ?? "A");
  const kind = KINDS[kindName] ?? KINDS.cut;
  const machines =
    kind?.on === "store" ? ["store"] : kind?.on === "all" ? [...script.nodes, "store"] : script.nodes;
  const on = machines.includes(chosen) ? chosen : (machines[0] ?? "A");
  return (
    <div class="actions">
      <select
        class="input"
        aria-label="What goes wrong"
        value={kindName}
        onChange={(event) => setKind(event.currentTarget.value)}
      >
        {Object.entries(KINDS).map(([name, { label }]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
      <select
        class="input"
        aria-label="On which machine"
        value={on}
        onChange={(event) => setOn(event.currentTarget.value)}
      >
        {machines.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <button type="button" class="button" onClick={() => kind !== undefined && onAdd(kind.make(on))}>
        Add
      </button>
    </div>
  );
}
