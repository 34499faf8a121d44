/** The seeds' own words, thin over the one pipeline. */
export { type LeaseCoordinatorOptions, LeaseCoordinatorService } from "./lease-coordinator-service.ts";
export { LeaseGate, type LeaseGateOptions, type StepPermit, type StepResult } from "./lease-gate.ts";
