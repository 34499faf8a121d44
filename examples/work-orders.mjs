// One executor for each work order, and takeover from what it wrote down. The first executor dies after step 2. Who takes over
// must first rebuild from the ledger; until it says that it did, the lease can be renewed but not used.
//   node examples/work-orders.mjs ./data
//
// Prints:
//   executor-1 does step 1
//   executor-1 does step 2
//   executor-1 dies
//   executor-2 found steps 1, 2 in the ledger
//   executor-2 does step 3
//   executor-2 does step 4
import { connect } from "solehold";
import { FencedResource } from "solehold/guards";

const [folder = "./data"] = process.argv.slice(2);
const ledger = new FencedResource([]); // stands for a table behind a guard
const STEPS = [1, 2, 3, 4];

async function execute(name, { ttl = "30s", diesAfter = Number.POSITIVE_INFINITY } = {}) {
  const leases = await connect(`embedded:${folder}`, { holder: name });
  const lease = await leases.acquire("work-orders/7", { ttl, wait: "10s" });
  ledger.raise(lease); // from here on nothing of an earlier executor is accepted
  if (lease.resumeFromLedgerRequired) {
    console.log(`${name} found steps ${ledger.state.join(", ")} in the ledger`);
    await lease.resumed();
  }
  for (const step of STEPS.filter((each) => !ledger.state.includes(each))) {
    if (step > diesAfter) {
      console.log(`${name} dies`);
      lease.abandon(); // as a crash would: nothing is released, the ttl has to end
      return;
    }
    console.log(`${name} does step ${step}`);
    ledger.write(lease, (done) => [...done, step]);
  }
  await lease.release();
  await leases.close();
}

await execute("executor-1", { ttl: "1s", diesAfter: 2 });
await execute("executor-2");
