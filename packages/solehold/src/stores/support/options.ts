/** What callers without a type checker pass to a store: nothing at all, or the URL by itself. */
import { describeType } from "../../core/index.ts";
import { StoreError } from "../../store/index.ts";

/** Throws unless it is an object. What was given is not repeated: a URL may carry a password. */
export function assertOptions(opener: string, options: unknown, example: string): void {
  if (typeof options === "object" && options !== null) return;
  const message = `${opener}: the options must be an object, as in ${example}, got ${describeType(options)}`;
  throw new StoreError("config", message, { outcome: "not-applied" });
}
