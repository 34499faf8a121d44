// Writes one record on request, with nothing else to do, and ends.
import { openEmbeddedStore, recordNamed, say } from "./common.mjs";

const [folder] = process.argv.slice(2);
const store = await openEmbeddedStore({ folder });
say("open");
await new Promise((resolve) => process.stdin.once("data", resolve));
process.stdin.destroy();
const next = recordNamed("late");
const { results } = await store.apply([{ key: next.key, expected: null, next }]);
say(results[0].kind);
