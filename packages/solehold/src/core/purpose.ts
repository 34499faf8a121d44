/** Why a lease is held. Fixed when it is granted; a use for another purpose is refused. */
export const PURPOSES = ["Operation", "StateWrite", "MigrationHandoff"] as const;

export type Purpose = (typeof PURPOSES)[number];

export const DEFAULT_PURPOSE: Purpose = "Operation";

export function isPurpose(value: unknown): value is Purpose {
  return value === "Operation" || value === "StateWrite" || value === "MigrationHandoff";
}
