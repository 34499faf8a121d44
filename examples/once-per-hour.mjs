// A cron job that every replica has, and that runs once per period. Three replicas fire within the same second.
//   node examples/once-per-hour.mjs ./data
//
// Prints:
//   replica-1 wrote the report
//   replica-2 has nothing to do: LEASE_LOCK_DELAY
//   replica-3 has nothing to do: LEASE_LOCK_DELAY
import { connect } from "solehold";

const [folder = "./data"] = process.argv.slice(2);

for (const replica of ["replica-1", "replica-2", "replica-3"]) {
  const leases = await connect(`embedded:${folder}`, { holder: replica });
  const { ran, reason } = await leases.runOncePer("reports/hourly", { period: "1h" }, async () => {
    console.log(`${replica} wrote the report`);
  });
  if (!ran) console.log(`${replica} has nothing to do: ${reason}`);
  await leases.close();
}
