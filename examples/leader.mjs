// Run it in two terminals: one leads, the other takes over when the first is stopped.
//   node examples/leader.mjs ./data [terms]
import { connect } from "solehold";

const [folder = "./data", terms = "Infinity"] = process.argv.slice(2);
const leases = await connect(`embedded:${folder}`);

let led = 0;
for await (const term of leases.elect("scheduler", { ttl: "5s" })) {
  console.log(`leading with fence ${term.fence}`);
  await oneRound(term);
  led += 1;
  if (led >= Number(terms)) break;
}
await leases.close();

/** A round of work that ends early when the leadership does. */
async function oneRound(term) {
  for (let step = 0; step < 3 && term.isHeld(); step += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
