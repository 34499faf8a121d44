// One of the processes of a soak: it takes a lease on one of a few keys, adds to that key's counter, which the
// driver guards, and gives the lease back, over and over, until it is killed.
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "solehold";

const task = JSON.parse(process.argv[2] ?? "{}");
const { url, holder, keys, ttlMs, plant } = task;
const TURNS = 4;
const WORK_MS = 2;
const monotonicMs = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;

let lastId = 0;
const pending = new Map();
process.on("message", ({ id, answer }) => {
  pending.get(id)?.(answer);
  pending.delete(id);
});
process.on("disconnect", () => process.exit(0));

/** Tells the driver, who is the protected resource, and waits for its answer. */
function ask(question) {
  lastId += 1;
  const id = lastId;
  return new Promise((resolve) => {
    pending.set(id, resolve);
    process.send({ id, ...question });
  });
}

async function addTo(key, lease, beganMs) {
  const fence = String(lease.fence);
  const about = { key, fence };
  await ask({ kind: "granted", ...about, beganMs, atMs: monotonicMs(), untilMs: endOfBelief(lease) });
  for (let turn = 0; turn < TURNS && lease.isHeld(); turn += 1) {
    const read = await ask({ kind: "read", ...about });
    if (!read.ok) return;
    await delay(WORK_MS);
    await ask({ kind: "write", ...about, value: read.value + 1, untilMs: endOfBelief(lease) });
  }
}

/** Until when, on the clock that all processes of the machine share, this process may act; 0 when it may not. */
function endOfBelief(lease) {
  const nowMs = monotonicMs();
  const leftMs = lease.remaining();
  return leftMs > 0 ? nowMs + leftMs : 0;
}

/** A planted mistake: whoever wants to may act, and all with the same fence. */
const noLease = {
  fence: 1n,
  isHeld: () => true,
  remaining: () => ttlMs,
  release: async () => undefined,
};

/** The engine may be away just when this process starts. */
async function connectInTheEnd() {
  for (;;) {
    try {
      return await connect(url, { holder });
    } catch (error) {
      if (error?.kind !== "unreachable" && error?.kind !== "timeout") throw error;
      await delay(100);
    }
  }
}

const leases = await connectInTheEnd();
process.send({ kind: "ready" });
for (;;) {
  const key = keys[Math.floor(Math.random() * keys.length)];
  const beganMs = monotonicMs();
  try {
    const lease = plant === "lease" ? noLease : await leases.acquire(key, { ttl: ttlMs, wait: "5s" });
    await addTo(key, lease, beganMs);
    process.send({ kind: "releasing", key, fence: String(lease.fence), atMs: monotonicMs() });
    await lease.release();
  } catch (error) {
    // The store is away, or the wait was too long: both are part of the weather. Anything else is not.
    if (error?.code === undefined) throw error;
    await ask({ kind: "failed", code: error.code });
  }
}
