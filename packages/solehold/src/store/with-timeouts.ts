/**
 * A store whose listings and watches end: one that gives no answer within the time limit fails with a
 * StoreError instead of holding its caller for ever. (Reads and writes have limits of their own, in
 * executor/call-batcher.ts, because commands differ in their time-outs.)
 */
import type { Env } from "../env/index.ts";
import type { LeaseStore } from "./contract.ts";
import { withDeadline } from "./deadline.ts";
import { decorateStore } from "./decorate.ts";
import { StoreError } from "./errors.ts";
import type { StoreWatch } from "./watching.ts";

type Bounded = <Value>(
  what: string,
  call: () => Promise<Value>,
  onLate?: (value: Value) => void,
) => Promise<Value>;

export function withTimeouts(store: LeaseStore, env: Env, timeoutMs: number): LeaseStore {
  const bounded: Bounded = (what, call, onLate) => answerWithin(env, timeoutMs, what, call, onLate);
  const list = store.list?.bind(store);
  const watch = store.watch?.bind(store);
  return decorateStore(store, {
    ...(list && { list: (query) => bounded("listing", () => list(query)) }),
    ...(watch && { watch: (scope, listener) => bounded("watch", () => watch(scope, listener), closeLate) }),
  });
}

/** Nobody waits for it any more, so nobody else would close it. */
function closeLate(late: StoreWatch): void {
  late.close().catch(() => undefined);
}

/** For calls that a lost answer leaves without effect on any lease. */
export function answerWithin<Value>(
  env: Env,
  timeoutMs: number,
  what: string,
  call: () => Promise<Value>,
  onLate?: (value: Value) => void,
): Promise<Value> {
  const noAnswer = (): StoreError =>
    new StoreError("timeout", `the store gave no answer to a ${what} within ${timeoutMs} ms`, {
      outcome: "not-applied",
    });
  return withDeadline(env, timeoutMs, Promise.resolve().then(call), noAnswer, onLate);
}
