// A process that holds a lease which a thread renews, and whose main thread is blocked until its parent writes a byte.
import { readSync } from "node:fs";
import { connect } from "solehold";

const [url, name, ttl, mainThreadBound] = process.argv.slice(2);
const leases = await connect(url, { renewIn: "worker", mainThreadBound: Number(mainThreadBound) });
const lease = await leases.acquire(name, { ttl: Number(ttl), keepAlive: true });
const report = (message, then) => process.send(message, then);
lease.onRenewed((remainingMs) => report({ renewed: remainingMs }));

process.on("message", (command) => {
  if (command === "abandon") lease.abandon();
  if (command !== "block") return;
  report("blocked", () => {
    readSync(0, Buffer.alloc(1));
    // In the same turn: no timer has run, and no message was delivered.
    const [remainingMs, held] = [lease.remaining(), lease.isHeld()];
    report({ remainingMs, held, fence: String(lease.fence), state: lease.state });
    const reportLoss = () => report({ lost: lease.lossReason });
    if (lease.signal.aborted) reportLoss();
    else lease.signal.addEventListener("abort", reportLoss);
  });
});
report("ready");
