import type { ServerResponse } from "node:http";

/**
 * The turn ends when the handler ends the response, and not when the client goes away: a handler whose client is gone may
 * still be about to write.
 */
export function leaveWithEnd(response: ServerResponse, leave: () => void): void {
  const end = response.end;
  Object.assign(response, {
    end: (...parts: unknown[]): unknown => {
      leave();
      return Reflect.apply(end, response, parts);
    },
  });
}
