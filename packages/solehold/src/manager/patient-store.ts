/**
 * A store whose listings, watches and lines end: one that gives no answer within the time limit fails with a
 * StoreError instead of holding its caller for ever. (Reads and writes have limits of their own, in
 * store-calls.ts, because commands differ in patience.)
 */
import type { Env } from "../env/index.ts";
import { type LeaseStore, StoreError, type StoreWatch } from "../stores/index.ts";

export function patientStore(store: LeaseStore, env: Env, callTimeoutMs: number): LeaseStore {
  const limited: Limited = (what, call, onLate) => withinLimit(env, callTimeoutMs, what, call, onLate);
  const watch = store.watch?.bind(store);
  const standInLine = store.standInLine?.bind(store);
  return {
    name: store.name,
    get capabilities() {
      return store.capabilities;
    },
    ...(store.now === undefined ? {} : { now: () => store.now?.() ?? 0 }),
    read: (keys) => store.read(keys),
    apply: (writes) => store.apply(writes),
    list: (query) => limited("listing", () => store.list(query)),
    ...(watch === undefined
      ? {}
      : { watch: (scope, listener) => limited("watch", () => watch(scope, listener), closeLate) }),
    ...(standInLine === undefined ? {} : { standInLine: patientLine(standInLine, limited) }),
    ...(store.notebook === undefined ? {} : { notebook: store.notebook.bind(store) }),
    close: () => store.close(),
  };
}

type Limited = <Value>(
  what: string,
  call: () => Promise<Value>,
  onLate?: (value: Value) => void,
) => Promise<Value>;

type StandInLine = NonNullable<LeaseStore["standInLine"]>;

/** Who waits in a line looks for itself, too; but not while it waits for an answer. */
function patientLine(standInLine: StandInLine, limited: Limited): StandInLine {
  return async (key, listener) => {
    const place = await limited("place in line", () => standInLine(key, listener), closeLate);
    return {
      enter: () => limited("place in line", () => place.enter()),
      leave: (why) => place.leave(why),
      close: () => place.close(),
    };
  };
}

/** Nobody waits for it any more, so nobody else would close it. */
function closeLate(late: StoreWatch): void {
  late.close().catch(() => undefined);
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
