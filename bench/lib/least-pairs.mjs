// The least that a pair of ours could cost in JavaScript: for each of its two commands a secret token or its hash, a nonce,
// core's decision, and a write that travels with all others of the turn through the very same store. No look at the request,
// no time limits, no answer to a conflict or a lost reply, no belief, no renewal, no handle: nobody should use it. It tells how
// much of a figure is the library's and how much comes with deciding in the client at all.
import { hash, randomBytes } from "node:crypto";
import { createPolicy, decide } from "solehold/internal";

export const LEAST = "least: token, decision, our store";

const HOLDER = "least";
const TTL_MS = 30_000;

export function leastPairs(store, names) {
  const policy = createPolicy({});
  const known = new Map();
  const submit = turns(store);
  const execute = (command) =>
    new Promise((resolve, reject) => {
      const { name } = command.key;
      const snapshot = known.get(name) ?? NOTHING;
      const nowMs = Date.now();
      const now = { earliestMs: nowMs, latestMs: nowMs, stampMs: nowMs };
      const { decision, effect } = decide(command, snapshot, now, policy);
      if (effect.kind !== "write") throw new Error(`not decided as expected: ${decision.reason}`);
      submit({
        key: command.key,
        expected: snapshot.version,
        next: effect.record,
        answered: ({ kind, version }) => {
          if (kind !== "applied") return reject(new Error(`not applied: ${kind}`));
          known.set(name, { record: effect.record, floor: 0n, version });
          resolve();
        },
        failed: reject,
      });
    });
  return async (worker, index) => {
    const key = { tenant: "default", name: names(worker, index) };
    const token = randomId();
    const tokenHash = hashOf(token);
    const purpose = "Operation";
    await execute({
      op: "acquire",
      key,
      holder: HOLDER,
      purpose,
      ttlMs: TTL_MS,
      tokenHash,
      nonce: randomId(),
    });
    await execute({ op: "release", key, holder: HOLDER, tokenHash: hashOf(token), nonce: randomId() });
  };
}

const NOTHING = { record: null, floor: 0n, version: null };

/** All writes of a turn, in as many calls as the store wants to have under way. */
function turns(store) {
  const { maxBatch, maxConcurrentCalls, minBatch = maxBatch } = store.capabilities;
  let waiting = [];
  let underWay = 0;
  let isPlanned = false;
  const plan = () => {
    if (isPlanned || waiting.length === 0 || underWay >= maxConcurrentCalls) return;
    isPlanned = true;
    queueMicrotask(() => process.nextTick(flush));
  };
  const flush = () => {
    isPlanned = false;
    const share = Math.ceil(waiting.length / (maxConcurrentCalls - underWay));
    const size = Math.min(maxBatch, Math.max(minBatch, share));
    while (waiting.length > 0 && underWay < maxConcurrentCalls) {
      const batch = waiting.slice(0, size);
      waiting = waiting.slice(size);
      underWay += 1;
      store.apply(batch).then(
        ({ results }) => end(batch, (write, index) => write.answered(results[index])),
        (error) => end(batch, (write) => write.failed(error)),
      );
    }
  };
  const end = (batch, deliver) => {
    underWay -= 1;
    for (const [index, write] of batch.entries()) deliver(write, index);
    plan();
  };
  return (write) => {
    waiting.push(write);
    plan();
  };
}

let bytes = Buffer.alloc(0);
let used = 0;

function randomId() {
  if (used === bytes.length) {
    bytes = randomBytes(1_024);
    used = 0;
  }
  used += 16;
  return bytes.toString("base64url", used - 16, used);
}

function hashOf(token) {
  return hash("sha256", token, "base64url");
}
