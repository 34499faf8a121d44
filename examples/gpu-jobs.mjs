// Six jobs and three GPUs: at most three run at a time, each on the device that its slot names. A job that dies frees its
// device after the ttl.
//   node examples/gpu-jobs.mjs ./data
//
// Prints:
//   6 jobs done
//   at most 3 at a time: true
//   never two on one device: true
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "solehold";
import { FencedResource } from "solehold/guards";

const [folder = "./data"] = process.argv.slice(2);
const leases = await connect(`embedded:${folder}`);
const devices = new Map([0, 1, 2].map((slot) => [slot, new FencedResource("idle")])); // each refuses a job that is out of time
const busy = new Set();
let [done, most, twice] = [0, 0, false];

async function job(name) {
  await leases.run("gpu", { slots: 3, ttl: "30s", wait: "1m" }, async (lease) => {
    twice ||= busy.has(lease.slot);
    busy.add(lease.slot);
    most = Math.max(most, busy.size);
    devices.get(lease.slot).write(lease, () => name);
    await sleep(50, undefined, { signal: lease.signal }); // the training; it stops when the lease is lost
    busy.delete(lease.slot);
    done += 1;
  });
}

await Promise.all(["a", "b", "c", "d", "e", "f"].map(job));
console.log(`${done} jobs done`);
console.log(`at most 3 at a time: ${most <= 3}`);
console.log(`never two on one device: ${!twice}`);
await leases.close();
