// One activation for each actor. Rendezvous hashing says which node should have it; the lease makes sure that only one has.
//   node examples/actor-placement.mjs ./data
//
// Prints:
//   every actor is active on exactly one node: true
//   each on the node that placement names: true
import { connect } from "solehold";
import { selectCoordinator } from "solehold/placement";

const [folder = "./data"] = process.argv.slice(2);
const NODES = ["node-a", "node-b", "node-c"];
const ACTORS = Array.from({ length: 12 }, (_, index) => `actors/${index}`);
const candidates = NODES.map((nodeId) => ({ nodeId, weight: 1 }));
const homeOf = (actor) => selectCoordinator({ leaseId: actor, traceId: actor, candidates }).selected;

const cluster = new Map(
  await Promise.all(NODES.map(async (node) => [node, await connect(`embedded:${folder}`, { holder: node })])),
);
const active = new Map();
for (const actor of ACTORS) {
  const home = homeOf(actor);
  active.set(actor, await cluster.get(home).acquire(actor, { ttl: "30s" }));
  for (const node of NODES.filter((each) => each !== home)) {
    const { ok } = await cluster.get(node).tryAcquire(actor);
    if (ok) throw new Error(`${actor} is active twice`);
  }
}
console.log(`every actor is active on exactly one node: ${active.size === ACTORS.length}`);
console.log(
  `each on the node that placement names: ${[...active].every(([actor, { holder }]) => holder === homeOf(actor))}`,
);
for (const leases of cluster.values()) await leases.close({ release: true });
