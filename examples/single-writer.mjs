// One writer of a database on shared storage. The first one is paused, loses its lease and comes back: its write is refused.
//   node examples/single-writer.mjs ./data       (or s3://bucket/leases, azblob://container/leases)
//
// Prints:
//   a writes page 1
//   b took over
//   b writes page 1
//   the zombie a is refused: STALE_FENCE
import { connect } from "solehold";
import { FencedResource } from "solehold/guards";

const [place = "./data"] = process.argv.slice(2);
const url = /^\w+:\/\//.test(place) ? place : `embedded:${place}`;
const pages = new FencedResource({}); // FencedObjectWriter of solehold/guards does this for objects
const write = (lease, name) => {
  pages.write(lease, (all) => ({ ...all, 1: name }));
  console.log(`${name} writes page 1`);
};

const a = await (await connect(url, { holder: "a" })).acquire("databases/main", {
  ttl: "1s",
  autoRenew: false,
});
pages.raise(a);
write(a, "a");

const b = await (await connect(url, { holder: "b" })).acquire("databases/main", { ttl: "30s", wait: "20s" });
console.log("b took over");
pages.raise(b);
write(b, "b");

try {
  write(a, "a"); // a did not look at its lease: it was paused, and goes on
} catch (error) {
  console.log(`the zombie a is refused: ${error.code}`);
}
await b.release();
process.exit(0);
