/** Durations for people: the two most telling units, never more precise than is useful. */
const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** 850ms, 12.3s, 4m05s, 2h03m, 3d04h. */
export function shortDuration(ms: number): string {
  if (ms < SECOND_MS) return `${Math.max(0, Math.ceil(ms))}ms`;
  if (ms < 10 * SECOND_MS) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`;
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)}s`;
  if (ms < HOUR_MS) return pair(ms, MINUTE_MS, "m", SECOND_MS, "s");
  if (ms < DAY_MS) return pair(ms, HOUR_MS, "h", MINUTE_MS, "m");
  return pair(ms, DAY_MS, "d", HOUR_MS, "h");
}

function pair(ms: number, largeMs: number, large: string, smallMs: number, small: string): string {
  const whole = Math.floor(ms / largeMs);
  const rest = Math.floor((ms % largeMs) / smallMs);
  return `${whole}${large}${String(rest).padStart(2, "0")}${small}`;
}
