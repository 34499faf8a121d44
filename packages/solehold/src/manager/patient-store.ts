/**
 * A store whose listings and watches end: one that gives no answer within the time limit fails with a
 * StoreError instead of holding its caller for ever. (Reads and writes have limits of their own, in
 * store-calls.ts, because commands differ in patience.)
 */
import type { Env } from "../env/index.ts";
import { type LeaseStore, StoreError, type StoreWatch } from "../stores/index.ts";

export function patientStore(store: LeaseStore, env: Env, callTimeoutMs: number): LeaseStore {
  const limited = <Value>(what: string, call: () => Promise<Value>, onLate?: (value: Value) => void) =>
    withinLimit(env, callTimeoutMs, what, call, onLate);
  return {
    name: store.name,
    get capabilities() {
      return store.capabilities;
    },
    ...(store.now === undefined ? {} : { now: () => store.now?.() ?? 0 }),
    read: (keys) => store.read(keys),
    apply: (writes) => store.apply(writes),
    list: (query) => limited("listing", () => store.list(query)),
    ...(store.watch === undefined
      ? {}
      : {
          watch: (scope, listener) =>
            limited(
              "watch",
              () => watchOf(store)(scope, listener),
              (late: StoreWatch) => {
                // Nobody waits for it any more, so nobody else would close it.
                late.close().catch(() => undefined);
              },
            ),
        }),
    ...(store.standInLine === undefined ? {} : { standInLine: store.standInLine.bind(store) }),
    close: () => store.close(),
  };
}

function watchOf(store: LeaseStore): NonNullable<LeaseStore["watch"]> {
  if (store.watch === undefined)
    throw new StoreError("config", "the store cannot watch", { outcome: "not-applied" });
  return store.watch.bind(store);
}

/** For calls that a lost answer leaves without effect on any lease. */
export function withinLimit<Value>(
  env: Env,
  limitMs: number,
  what: string,
  call: () => Promise<Value>,
  onLate?: ((value: Value) => void) | undefined,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    let late = false;
    const timer = env.timer(
      limitMs,
      () => {
        late = true;
        const message = `the store gave no answer to a ${what} within ${limitMs} ms`;
        reject(new StoreError("timeout", message, { outcome: "not-applied" }));
      },
      { keepAlive: "yes" },
    );
    const answered = (value: Value): void => {
      timer.cancel();
      if (late) onLate?.(value);
      else resolve(value);
    };
    const failed = (error: unknown): void => {
      timer.cancel();
      reject(error);
    };
    Promise.resolve().then(call).then(answered, failed);
  });
}
