import { StoreError } from "./errors.ts";

/** Throws a StoreError that names the first option that is not a whole number from `least` on. */
export function assertWholeNumbers(
  store: string,
  options: Readonly<Record<string, number>>,
  least: number,
): void {
  for (const [option, value] of Object.entries(options)) {
    if (Number.isSafeInteger(value) && value >= least) continue;
    const message = `${store}: ${option} must be a whole number from ${least}, got '${String(value)}'`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  }
}
