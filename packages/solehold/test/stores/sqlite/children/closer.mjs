// Watches, writes and closes, several times. Nothing but the store keeps this process alive: if close() does not, it ends
// in the middle of it, with Node's exit code 13.
import { openEmbeddedStore, recordNamed, say } from "./common.mjs";

const ROUNDS = 8;
const [folder] = process.argv.slice(2);
for (let round = 1; round <= ROUNDS; round += 1) {
  const store = await openEmbeddedStore({ folder });
  await store.watch({ tenant: "default", prefix: "" }, () => undefined);
  // Its own write wakes the one that looks for changes; the look is under way when close() begins.
  for (let write = 0; write < 4; write += 1) {
    const next = recordNamed(`round-${round}/${write}`);
    await store.apply([{ key: next.key, expected: null, next }]);
  }
  await store.close();
}
say("closed");
