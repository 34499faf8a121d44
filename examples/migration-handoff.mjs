// A deploy: the old version names the new one as its successor, and nobody else can take the lease in between.
//   node examples/migration-handoff.mjs ./data
//
// Prints:
//   v1 works
//   a stranger is turned away: LEASE_HANDOFF_PENDING
//   v2 works, with a higher fence: true
import { connect } from "solehold";

const [folder = "./data"] = process.argv.slice(2);
const as = (holder) => connect(`embedded:${folder}`, { holder });

const v1 = await (await as("v1")).acquire("ingest", { ttl: "30s" });
console.log("v1 works");
await v1.handOff("v2", { withinMs: 10_000 });

const stranger = await (await as("stranger")).tryAcquire("ingest");
console.log(`a stranger is turned away: ${stranger.reason}`);

const v2 = await (await as("v2")).acquire("ingest", { ttl: "30s" });
console.log(`v2 works, with a higher fence: ${v2.fence > v1.fence}`);
await v2.release();
process.exit(0);
