/** Which code runs: the shipped one, or one with a planted bug. */
import { RULES } from "../data/cases.ts";

export interface CodeSwitchProps {
  /** The bug that this world is about; null where any may be chosen. */
  readonly bug: string | null;
  readonly current: string | null;
  readonly onChange: (bug: string | null) => void;
}

const SHIPPED = "shipped";

export function CodeSwitch({ bug, current, onChange }: CodeSwitchProps) {
  const change = (value: string): void => onChange(value === SHIPPED ? null : value);
  return (
    <label class={current === null ? "code-switch" : "code-switch broken"}>
      <span>Code</span>
      <select
        class="input"
        value={current ?? SHIPPED}
        onChange={(event) => change(event.currentTarget.value)}
      >
        <option value={SHIPPED}>as shipped</option>
        {bug !== null && <option value={bug}>without the rule: {bug}</option>}
        <optgroup label="another planted bug">
          {RULES.filter((rule) => rule.bug !== bug).map((rule) => (
            <option key={rule.bug} value={rule.bug}>
              {rule.bug}
            </option>
          ))}
        </optgroup>
      </select>
    </label>
  );
}
