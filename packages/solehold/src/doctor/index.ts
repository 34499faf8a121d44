/** Findings about a store or a server: see examine.ts. */
export { checkClock } from "./clock.ts";
export { collectionFinding, durabilityFinding, examineLeases, newDoctorKey } from "./examine.ts";
export * from "./report.ts";
