// Through a store alone: the two writes of a pair as they stand after the decisions, which nobody makes here. What comes in
// one turn travels in one call, as a executor would send it.
import { heldRecord, releasedRecord } from "./records.mjs";

export function storePairs(store, names) {
  const ended = new Map();
  const write = batched(store);
  return async (worker, index) => {
    const name = names(worker, index);
    const held = heldRecord(name);
    const released = releasedRecord(held);
    const { key } = held;
    const { version, record } = ended.get(name) ?? { version: null, record: null };
    const granted = await write({ key, expected: version, next: held, replaces: record });
    const given = await write({ key, expected: granted, next: released, replaces: held });
    ended.set(name, { version: given, record: released });
  };
}

/** Resolves with the new version. */
function batched(store) {
  const waiting = [];
  const flush = () => {
    while (waiting.length > 0) send(waiting.splice(0, store.capabilities.maxBatch));
  };
  const send = async (batch) => {
    try {
      const { results } = await store.apply(batch.map((each) => each.write));
      for (const [index, { resolve, reject }] of batch.entries()) {
        const { kind, version } = results[index];
        if (kind === "applied") resolve(version);
        else reject(new Error(`not applied: ${kind}`));
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };
  return (write) =>
    new Promise((resolve, reject) => {
      if (waiting.push({ write, resolve, reject }) === 1) queueMicrotask(() => process.nextTick(flush));
    });
}
