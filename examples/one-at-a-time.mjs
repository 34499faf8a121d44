// Several processes run this; one at a time does the work, and what it writes is fenced. One at a time is not once: each
// process that waits has its turn.
//   node examples/one-at-a-time.mjs ./data
import { connect } from "solehold";
import { FencedResource } from "solehold/guards";

const [folder = "./data"] = process.argv.slice(2);
const leases = await connect(`embedded:${folder}`);

// Stands for whatever you protect: it refuses a writer whose lease is gone. See docs/guards.md for databases.
const ledger = new FencedResource("nothing yet");

await leases.run("orders/worker", { ttl: "10s", wait: "30s" }, async (lease) => {
  console.log(`working as ${lease.holder} with fence ${lease.fence}`);
  lease.signal.throwIfAborted(); // hand lease.signal to fetch, timers and the like
  ledger.write(lease, () => `written with fence ${lease.fence}`);
});

console.log(ledger.state);
await leases.close();
