/**
 * While a simulation runs, the real world is out of reach: code that reads a real clock, sets a real timer
 * or draws a real random number gets an error that names it, instead of a run that cannot be repeated.
 *
 * Safe because a run never yields to the event loop: nobody else's code runs between `install` and
 * `restore`. Not trapped: `process.hrtime.bigint`, and randomness from `node:crypto` that was imported
 * before; the layer check forbids both outside of `env`.
 */

type Target = Record<string, unknown>;

function trapped(name: string): () => never {
  return () => {
    throw new Error(`${name} was used inside a simulated run: take time, timers and randomness from Env`);
  };
}

export async function withoutRealWorld<Result>(run: () => Promise<Result>): Promise<Result> {
  const restore = install();
  try {
    return await run();
  } finally {
    restore();
  }
}

function install(): () => void {
  const places: readonly (readonly [Target, string, string])[] = [
    [Date as unknown as Target, "now", "Date.now"],
    [Math as unknown as Target, "random", "Math.random"],
    [performance as unknown as Target, "now", "performance.now"],
    [globalThis as unknown as Target, "setTimeout", "setTimeout"],
    [globalThis as unknown as Target, "setInterval", "setInterval"],
    [globalThis as unknown as Target, "setImmediate", "setImmediate"],
    [globalThis as unknown as Target, "fetch", "fetch"],
  ];
  // Simulated failures are many and expected: their stack traces would cost more than the rest of the run.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const undo = places.map(([target, field, name]) => {
    const own = Object.getOwnPropertyDescriptor(target, field);
    Object.defineProperty(target, field, { value: trapped(name), configurable: true, writable: true });
    return () => {
      if (own === undefined) delete target[field];
      else Object.defineProperty(target, field, own);
    };
  });
  return () => {
    Error.stackTraceLimit = stackTraceLimit;
    for (const each of undo) each();
  };
}
