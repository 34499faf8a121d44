/**
 * The two decisions of this layer behind one object that holds what does not change between calls: the
 * algorithm and the quorum. It keeps no state, so two services made alike answer alike.
 */

import { type QuorumRequest, type QuorumVerification, verifyQuorum } from "../approvals/quorum.ts";
import type { Quorum } from "../approvals/quorum-definition.ts";
import type { SelectionAlgorithm } from "../placement/rendezvous.ts";
import {
  type CoordinatorSelection,
  DEFAULT_ALGORITHM,
  type SelectionRefusal,
  type SelectionRequest,
  selectCoordinator,
} from "../placement/selection.ts";

export interface LeaseCoordinatorOptions {
  readonly quorum: Quorum;
  readonly algorithm?: SelectionAlgorithm;
}

export class LeaseCoordinatorService {
  readonly #quorum: Quorum;
  readonly #algorithm: SelectionAlgorithm;

  constructor({ quorum, algorithm = DEFAULT_ALGORITHM }: LeaseCoordinatorOptions) {
    this.#quorum = quorum;
    this.#algorithm = algorithm;
  }

  /** Uses the service's algorithm unless the request names another. */
  selectCoordinator(request: SelectionRequest): CoordinatorSelection | SelectionRefusal {
    return selectCoordinator({ algorithm: this.#algorithm, ...request });
  }

  verifyQuorum(request: Omit<QuorumRequest, "quorum">): QuorumVerification {
    return verifyQuorum({ ...request, quorum: this.#quorum });
  }
}
