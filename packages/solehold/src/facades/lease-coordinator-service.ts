/**
 * LeaseCoordinatorService in the words of document 003: selectCoordinator and verifyQuorum behind one object that holds
 * what does not change between calls: the algorithm, the thresholds and the known signers. It keeps no state, so two
 * services made alike answer alike.
 */

import { type QuorumRequest, type QuorumVerification, verifyQuorum } from "../approvals/quorum.ts";
import { Quorum, type QuorumMode } from "../approvals/quorum-definition.ts";
import { CoordinatorError } from "../placement/codes.ts";
import type { SelectionAlgorithm } from "../placement/rendezvous.ts";
import {
  type CoordinatorSelection,
  DEFAULT_ALGORITHM,
  type SelectionRefusal,
  type SelectionRequest,
  selectCoordinator,
} from "../placement/selection.ts";

/** The document's QuorumConfig: how many distinct signers each tier needs. A 0 counts as 1. */
export interface TierThresholds {
  readonly standardThreshold: number;
  readonly riskyThreshold: number;
  readonly dangerousThreshold: number;
}

/** Who may sign: the public key of each signer, as `generateKeyPair` gives it. */
export interface KnownSigners {
  readonly knownSigners: { readonly [signerId: string]: string };
  /** Default 1, 2 and 3, but no more than there are signers. */
  readonly config?: TierThresholds;
  /** "strict" (default): any failure fails the quorum. "lenient": enough valid signers pass. */
  readonly mode?: QuorumMode;
}

export type LeaseCoordinatorOptions = (KnownSigners | { readonly quorum: Quorum }) & {
  /** Default "rendezvous-v1". "product-v1" is the score of the document's own system. */
  readonly algorithm?: SelectionAlgorithm;
};

export class LeaseCoordinatorService {
  readonly #quorum: Quorum;
  readonly #algorithm: SelectionAlgorithm;

  /** Throws a CoordinatorError that names the first problem of the thresholds or signers. */
  constructor(options: LeaseCoordinatorOptions) {
    this.#quorum = "quorum" in options ? options.quorum : quorumOf(options);
    this.#algorithm = options.algorithm ?? DEFAULT_ALGORITHM;
  }

  /**
   * The node that coordinates a lease: the same for the same candidates, lease and algorithm, in any order and for any
   * trace id. Not `ok` with LC_NO_CANDIDATES when no candidate has a weight above 0. Uses the service's algorithm unless
   * the request names another.
   */
  selectCoordinator(request: SelectionRequest): CoordinatorSelection | SelectionRefusal {
    return selectCoordinator({ algorithm: this.#algorithm, ...request });
  }

  /** Whether enough known signers consent to exactly this request, now; every failure is classified. Never throws. */
  verifyQuorum(request: Omit<QuorumRequest, "quorum">): QuorumVerification {
    return verifyQuorum({ ...request, quorum: this.#quorum });
  }
}

function quorumOf({ knownSigners, config, mode = "strict" }: KnownSigners): Quorum {
  const signers = Object.entries(knownSigners).map(([signerId, publicKey]) => ({
    signerId,
    keys: [{ publicKey }],
  }));
  const thresholds =
    config === undefined
      ? { standard: 1, risky: Math.min(2, signers.length), dangerous: Math.min(3, signers.length) }
      : {
          standard: config.standardThreshold,
          risky: config.riskyThreshold,
          dangerous: config.dangerousThreshold,
        };
  const defined = Quorum.define({ signers, thresholds, mode });
  if (defined.ok) return defined.quorum;
  const [problem = { field: "knownSigners", message: "cannot be used" }] = defined.problems;
  throw new CoordinatorError("LC_INVALID_REQUEST", problem);
}
