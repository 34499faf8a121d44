// A process of its own that opens an embedded store and says how long that took, and what memory it then has: the
// parent's heap would hide it. Usage: node --expose-gc growth-child.mjs FOLDER HELD
import { connect } from "solehold";
import { openEmbeddedStore } from "solehold/embedded";
import { privateBytes } from "./cpu.mjs";

const [folder = "", held = "0"] = process.argv.slice(2);
const count = Number(held);

const started = performance.now();
const store = await openEmbeddedStore({ folder });
const { records } = await store.read([{ tenant: "default", name: "live/0" }]);
const openMs = performance.now() - started;
if (records[0]?.kind !== "found") throw new Error("the store has no live/0");
await store.close();

const leases = await connect(`embedded:${folder}`);
const work = async () => {
  for (let index = 0; index < 200; index += 1) {
    const lease = await leases.acquire(`work/${index % 20}`);
    await lease.release();
  }
};
await work();
const bytes = privateBytes(process.pid);

const before = heapBytes();
const handles = [];
for (let start = 0; start < count; start += 1_000) {
  const names = Array.from({ length: Math.min(1_000, count - start) }, (_, index) => `held/${start + index}`);
  handles.push(...(await Promise.all(names.map((name) => leases.acquire(name, { ttl: "10m" })))));
}
const heldBytes = count === 0 ? null : (heapBytes() - before) / count;
for (let start = 0; start < count; start += 1_000) {
  await Promise.all(handles.slice(start, start + 1_000).map((lease) => lease.release()));
}
await leases.close();
console.log(JSON.stringify({ openMs, privateBytes: bytes, heldBytes }));

function heapBytes() {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
