/** Work that costs the server much: what is asked for while the same is under way is refused with 429. */
import { ProblemError, tooMany } from "../protocol/problem.ts";

const RETRY_MS = 1_000;

/** `what`: "a verification". Each `who` may have one under way. */
export function oneAtATime(what: string) {
  const underWay = new Set<string>();
  return async <Result>(work: () => Promise<Result>, who = ""): Promise<Result> => {
    if (underWay.has(who)) throw new ProblemError(tooMany(`${what} is under way`, RETRY_MS));
    underWay.add(who);
    try {
      return await work();
    } finally {
      underWay.delete(who);
    }
  };
}
