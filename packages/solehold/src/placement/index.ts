/** Placement: which of several nodes should coordinate a lease, by weighted rendezvous hashing. Pure. */
export type { CoordinatorCode } from "./codes.ts";
export { COORDINATOR_CODES, CoordinatorError } from "./codes.ts";
export { MAX_ID_BYTES, MAX_LEASE_ID_BYTES } from "./names.ts";
export type { Claim, SelectionAlgorithm } from "./rendezvous.ts";
export { claimsOn, rendezvousCost, SELECTION_ALGORITHMS } from "./rendezvous.ts";
export type {
  CoordinatorCandidate,
  CoordinatorRanking,
  CoordinatorSelection,
  EligibleCandidate,
  SelectionRefusal,
  SelectionRequest,
} from "./selection.ts";
export { DEFAULT_ALGORITHM, MAX_CANDIDATES, rankCoordinators, selectCoordinator } from "./selection.ts";
