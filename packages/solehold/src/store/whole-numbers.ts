import { StoreError } from "./errors.ts";

/** What a timer can wait: a longer time would end at once. */
const MOST = 2 ** 31 - 1;

/** Throws a StoreError that names the first option that is not a whole number in this range. */
export function assertWholeNumbers(
  store: string,
  options: Readonly<Record<string, unknown>>,
  least: number,
  most = MOST,
): void {
  for (const [option, value] of Object.entries(options)) {
    if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) continue;
    const rule = `must be a whole number from ${least} to ${most}`;
    const message = `${store}: ${option} ${rule}, got '${String(value)}'`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  }
}
