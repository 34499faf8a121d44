/**
 * The thread of `renewIn: "worker"`: see renewal-worker.ts. Each lease that it keeps is an ordinary handle on a connection of
 * its own, with the main thread's sign of life as its probe; every answer of the store is reported.
 */
import { parentPort, workerData } from "node:worker_threads";
import { realEnv } from "../env/index.ts";
import { openExecutor } from "./connect.ts";
import { Lease } from "./lease.ts";
import { leaseContext } from "./lease-context.ts";

/** @import { LeaseExecutor } from "../executor/index.ts" */
/** @import { KeptLease, RenewalReport, ThreadData } from "./renewal-worker.ts" */

if (parentPort === null) throw new Error("this is the thread that renews leases");
const { url, options, boundMs, heartbeat } = /** @type {ThreadData} */ (workerData);
const executor = await openExecutor(url, options);
const context = leaseContext(executor, realEnv);

/** A hung process must lose its leases, however well this thread is. */
function mainThreadIsAlive() {
  return realEnv.monotonicMs() - Number(Atomics.load(heartbeat, 0)) < boundMs;
}

/**
 * @param {KeptLease["port"]} port
 * @returns {LeaseExecutor["execute"]}
 */
function reportingTo(port) {
  return async (request) => {
    const sentMs = realEnv.monotonicMs();
    const outcome = await executor.execute(request);
    const durationMs = realEnv.monotonicMs() - sentMs;
    /** @type {RenewalReport} */
    const report = {
      outcome:
        outcome.kind === "unsettled" ? { kind: "unsettled", cause: { kind: outcome.cause.kind } } : outcome,
      durationMs,
    };
    port.postMessage(report);
    return outcome;
  };
}

parentPort.on("message", (/** @type {KeptLease} */ { grant, ttlMs, port }) => {
  const renewing = { ...context, renew: reportingTo(port) };
  const lease = new Lease(renewing, grant, {
    ttlMs,
    autoRenew: true,
    keepAlive: false,
    probe: mainThreadIsAlive,
  });
  // Somebody observes it: a revocation is noticed at once, where the store announces changes.
  lease.onStateChange(() => undefined);
  port.once("close", () => lease.abandon());
});
parentPort.postMessage("ready");
