/**
 * Which node coordinates a lease. Pure: the same candidates, lease and algorithm give the same answer on
 * every platform, whatever the order of the candidates and whatever the trace id.
 *
 * Not promised: that the selected node is alive. Callers pass the nodes that they believe in; any other
 * node stays correct, only slower.
 */
import type { CoordinatorCode } from "./codes.ts";
import { compareUtf8, idProblem, MAX_ID_BYTES, MAX_LEASE_ID_BYTES, nameProblem, shown } from "./names.ts";
import type { SelectionAlgorithm } from "./rendezvous.ts";
import {
  ALGORITHM_RULES,
  type Claim,
  claimsOn,
  isSelectionAlgorithm,
  SELECTION_ALGORITHMS,
} from "./rendezvous.ts";

export const MAX_CANDIDATES = 10_000;
export const MAX_WEIGHT = 2n ** 64n - 1n;
export const DEFAULT_ALGORITHM: SelectionAlgorithm = "rendezvous-v1";

export interface CoordinatorCandidate {
  readonly nodeId: string;
  /** From 0 to 2^64-1, a whole number; 0 makes the node ineligible. Above 2^53-1 it must be a bigint. */
  readonly weight: bigint | number;
}

export interface EligibleCandidate {
  readonly nodeId: string;
  readonly weight: bigint;
}

export interface SelectionRequest {
  readonly candidates: readonly CoordinatorCandidate[];
  readonly leaseId: string;
  readonly traceId: string;
  readonly algorithm?: SelectionAlgorithm;
}

export interface CoordinatorSelection {
  readonly ok: true;
  readonly selected: string;
  /** The eligible candidates, ordered by the UTF-8 bytes of their ids. */
  readonly candidates: readonly EligibleCandidate[];
  readonly algorithm: SelectionAlgorithm;
  readonly leaseId: string;
  readonly traceId: string;
}

export interface SelectionRefusal {
  readonly ok: false;
  readonly code: CoordinatorCode;
  readonly field: string;
  readonly message: string;
  /** The nodes at fault, each once, ordered by UTF-8 bytes; empty when the fault is not a node's. */
  readonly nodeIds: readonly string[];
  readonly leaseId: string;
  readonly traceId: string;
}

/** All eligible nodes, the most wanted first: where to go next when the first does not answer. */
export interface CoordinatorRanking extends Omit<CoordinatorSelection, "selected"> {
  readonly ranked: readonly string[];
}

export function selectCoordinator(request: SelectionRequest): CoordinatorSelection | SelectionRefusal {
  const field = prepare(request);
  if (!field.ok) return field;
  const { candidates, algorithm, leaseId, traceId } = field;
  const { compare } = ALGORITHM_RULES[algorithm];
  const claim = claimsOn(leaseId, algorithm, MAX_ID_BYTES);
  let best: Claim | undefined;
  for (const { nodeId, weight } of candidates) {
    const next = claim(nodeId, weight);
    // The candidates come in the order of their ids, so the first of two equals is the smaller id.
    if (best === undefined || compare(next, best) < 0) best = next;
  }
  if (best === undefined) return noCandidates(request);
  return Object.freeze({ ok: true, selected: best.nodeId, candidates, algorithm, leaseId, traceId });
}

/** Like `selectCoordinator`, with the whole order. Without its first node the rest keep their order. */
export function rankCoordinators(request: SelectionRequest): CoordinatorRanking | SelectionRefusal {
  const field = prepare(request);
  if (!field.ok) return field;
  const { candidates, algorithm, leaseId, traceId } = field;
  if (candidates.length === 0) return noCandidates(request);
  const { compare } = ALGORITHM_RULES[algorithm];
  const claim = claimsOn(leaseId, algorithm, MAX_ID_BYTES);
  const claims = candidates.map(({ nodeId, weight }) => claim(nodeId, weight));
  claims.sort((a, b) => compare(a, b) || compareUtf8(a.nodeId, b.nodeId));
  const ranked = Object.freeze(claims.map(({ nodeId }) => nodeId));
  return Object.freeze({ ok: true, ranked, candidates, algorithm, leaseId, traceId });
}

type Prepared = Omit<CoordinatorSelection, "selected"> | SelectionRefusal;

function prepare(request: SelectionRequest): Prepared {
  const { candidates, leaseId, traceId, algorithm = DEFAULT_ALGORITHM } = request;
  const refuse = (field: string, message: string) =>
    refusal(request, "LC_INVALID_REQUEST", field, message, []);
  const leaseProblem = nameProblem(leaseId, MAX_LEASE_ID_BYTES);
  if (leaseProblem !== null) return refuse("leaseId", leaseProblem);
  const traceProblem = idProblem(traceId);
  if (traceProblem !== null) return refuse("traceId", traceProblem);
  if (!isSelectionAlgorithm(algorithm)) {
    return refuse("algorithm", `must be one of ${SELECTION_ALGORITHMS.join(", ")}, got ${shown(algorithm)}`);
  }
  if (!Array.isArray(candidates)) return refuse("candidates", `must be an array, got ${shown(candidates)}`);
  if (candidates.length > MAX_CANDIDATES) {
    return refuse("candidates", `must have at most ${MAX_CANDIDATES} entries, got ${candidates.length}`);
  }
  for (const [index, candidate] of candidates.entries()) {
    const problem = candidateProblem(request, index, candidate);
    if (problem !== null) return problem;
  }
  const sorted = candidates.map(({ nodeId, weight }) => ({ nodeId, weight: BigInt(weight) }));
  sorted.sort((a, b) => compareUtf8(a.nodeId, b.nodeId));
  const duplicates = repeatedIds(sorted);
  if (duplicates.length > 0) return duplicateRefusal(request, duplicates);
  return { ok: true, candidates: sorted.filter(({ weight }) => weight > 0n), algorithm, leaseId, traceId };
}

function candidateProblem(
  request: SelectionRequest,
  index: number,
  candidate: unknown,
): SelectionRefusal | null {
  const at = `candidates[${index}]`;
  if (typeof candidate !== "object" || candidate === null) {
    const message = `must be an object with nodeId and weight, got ${shown(candidate)}`;
    return refusal(request, "LC_INVALID_CANDIDATE", at, message, []);
  }
  const { nodeId, weight } = candidate as { readonly [field: string]: unknown };
  const problem = idProblem(nodeId);
  if (problem !== null) return refusal(request, "LC_INVALID_CANDIDATE", `${at}.nodeId`, problem, []);
  if (isWeight(weight)) return null;
  const message = `of node ${shown(nodeId)} must be a whole number from 0 to 2^64-1 (a bigint above 2^53-1), got ${shown(weight)}`;
  return refusal(request, "LC_INVALID_CANDIDATE", `${at}.weight`, message, [nodeId as string]);
}

function isWeight(weight: unknown): boolean {
  if (typeof weight === "bigint") return weight >= 0n && weight <= MAX_WEIGHT;
  return Number.isSafeInteger(weight) && (weight as number) >= 0;
}

function repeatedIds(sorted: readonly EligibleCandidate[]): readonly string[] {
  const repeated = sorted.filter(({ nodeId }, index) => nodeId === sorted[index - 1]?.nodeId);
  return [...new Set(repeated.map(({ nodeId }) => nodeId))];
}

function duplicateRefusal(request: SelectionRequest, nodeIds: readonly string[]): SelectionRefusal {
  const named = nodeIds.slice(0, 5).map(shown).join(", ") + (nodeIds.length > 5 ? ", ..." : "");
  const message = `name a node more than once: ${named}; give each node one entry`;
  return refusal(request, "LC_DUPLICATE_CANDIDATE", "candidates", message, nodeIds);
}

function noCandidates(request: SelectionRequest): SelectionRefusal {
  const message = "hold no eligible node: give at least one with a weight above 0";
  return refusal(request, "LC_NO_CANDIDATES", "candidates", message, []);
}

function refusal(
  { leaseId, traceId }: SelectionRequest,
  code: CoordinatorCode,
  field: string,
  message: string,
  nodeIds: readonly string[],
): SelectionRefusal {
  return Object.freeze({
    ok: false,
    code,
    field,
    message,
    nodeIds,
    leaseId: asText(leaseId),
    traceId: asText(traceId),
  });
}

/** Untyped callers may pass anything; the refusal still says what it answers to. */
function asText(value: unknown): string {
  return typeof value === "string" ? value : shown(value);
}
