// One of many processes that add to a counter which the parent guards. It takes the lease, reads, waits a little,
// writes back, and gives the lease up, over and over, until it gets the order to stop, is stopped or killed.
import { connect } from "solehold";

const [folder, name] = process.argv.slice(2);
const leases = await connect(`embedded:${folder}`, { holder: name });

let nextId = 0;
const pending = new Map();
process.on("message", ({ id, answer }) => {
  pending.get(id)?.(answer);
  pending.delete(id);
});

/** Asks the parent, who is the protected resource. */
function ask(question) {
  nextId += 1;
  const id = nextId;
  return new Promise((resolve) => {
    pending.set(id, resolve);
    process.send({ id, ...question });
  });
}

for (;;) {
  const attempt = await leases.acquire("counter", { ttl: 400, wait: "20s" }).catch(() => null);
  if (attempt === null) continue;
  const fence = String(attempt.fence);
  await ask({ kind: "granted", fence });
  for (let turn = 0; turn < 5 && attempt.isHeld(); turn += 1) {
    const read = await ask({ kind: "read", fence });
    if (!read.ok) break;
    await new Promise((resolve) => setImmediate(resolve));
    await ask({ kind: "write", fence, value: read.value + 1, believed: attempt.isHeld() });
  }
  await attempt.release();
}
