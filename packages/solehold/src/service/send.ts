/** From a request to the manager's method for it. */
import type { LeaseRecord } from "../core/index.ts";
import type { CommandOutcome, LeaseRequest, Noting, StoreLeaseManager } from "../manager/index.ts";

/**
 * `granted`: a release gives back this grant, and nothing that was written since. `noting` is for the commands that
 * come often and write a record; the others are audited in the usual way.
 */
export function sendTo(
  manager: StoreLeaseManager,
  request: LeaseRequest,
  granted: LeaseRecord | null,
  noting: Noting | null,
): Promise<CommandOutcome> {
  switch (request.op) {
    case "acquire":
      return manager.acquire(request, undefined, noting);
    case "renew":
      return manager.renew(request, noting);
    case "release":
      return granted === null ? manager.release(request, noting) : manager.giveBack(request, granted);
    case "use":
      return manager.use(request);
    case "resume":
      return manager.resume(request);
    case "handoff":
      return manager.handOff(request);
    case "revoke":
      return manager.revoke(request);
    case "break":
      return manager.break(request);
  }
}
