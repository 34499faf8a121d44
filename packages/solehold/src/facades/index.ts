/** The facades that the server, the command line and the simulator use. All of them are in `solehold/seeds`: seeds.ts. */
export { type LeaseCoordinatorOptions, LeaseCoordinatorService } from "./lease-coordinator-service.ts";
export { LeaseGate, type LeaseGateOptions, type StepPermit, type StepResult } from "./lease-gate.ts";
