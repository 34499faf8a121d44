/**
 * The fence guard for Express, connect and plain node:http: `app.put("/…", fenceGuard({ keyOf }), handler)`. The next
 * request for the same key begins when the handler has ended its response. A handler must end it, also when its client is
 * gone, and must not write after that.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { FENCE_HEADER, fenceAdmission, type HttpGuardOptions } from "../guards/http.ts";
import { leaveWithEnd } from "./leave-with-end.ts";

export type { HttpGuardOptions } from "../guards/http.ts";

export function fenceGuard<Request extends IncomingMessage>(
  options: HttpGuardOptions<Request>,
): (request: Request, response: ServerResponse, next: (error?: unknown) => void) => void {
  const admit = fenceAdmission(options);
  return (request, response, next) => {
    admit(request, request.headers[FENCE_HEADER]).then((admission) => {
      if (admission.refusal === null) {
        leaveWithEnd(response, admission.leave);
        return next();
      }
      const { status, body } = admission.refusal;
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    }, next);
  };
}
