// A pool of workers with one leader that hands out the work. When the leader stops, another one goes on where it was.
//   node examples/worker-pool.mjs ./data
//
// Prints:
//   a leads and hands out order 1
//   a leads and hands out order 2
//   a stops
//   b leads and hands out order 3
//   b leads and hands out order 4
import { connect } from "solehold";

const [folder = "./data"] = process.argv.slice(2);
const orders = [1, 2, 3, 4]; // stands for a queue in your database

async function worker(name, orderCount) {
  const leases = await connect(`embedded:${folder}`, { holder: name });
  for await (const term of leases.elect("pool/leader", { ttl: "10s" })) {
    for (let handed = 0; handed < orderCount && term.isHeld(); handed += 1) {
      const order = orders.shift();
      if (order === undefined) break;
      console.log(`${name} leads and hands out order ${order}`);
    }
    if (orders.length > 0) console.log(`${name} stops`);
    break; // resigns: the next one leads at once, not after the ttl
  }
  await leases.close();
}

await worker("a", 2);
await worker("b", 2);
