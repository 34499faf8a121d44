// Stands still in the middle of a transaction, with the lock that all processes' writes need.
import { open } from "lmdb";
import { openEmbeddedStore } from "./common.mjs";

const [folder] = process.argv.slice(2);
const store = await openEmbeddedStore({ folder });
await store.close();
const root = open(folder, { noSubdir: false, encoding: "string", maxDbs: 4, overlappingSync: false });
root.transactionSync(() => {
  root.putSync("never-committed", "1");
  process.stdout.write("holding\n", () => undefined);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});
