/** From a request to the manager's method for it. */
import type { LeaseRecord } from "../core/index.ts";
import type { CommandOutcome, LeaseRequest, StoreLeaseManager } from "../executor/index.ts";

/** `granted`: a release gives back this grant, and nothing that was written since. */
export function sendTo(
  manager: StoreLeaseManager,
  request: LeaseRequest,
  granted: LeaseRecord | null,
): Promise<CommandOutcome> {
  switch (request.op) {
    case "acquire":
      return manager.acquire(request);
    case "renew":
      return manager.renew(request);
    case "release":
      return granted === null ? manager.release(request) : manager.giveBack(request, granted);
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
