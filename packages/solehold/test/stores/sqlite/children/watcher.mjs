// Watches everything; prints the events.
import { openEmbeddedStore, say } from "./common.mjs";

const [folder] = process.argv.slice(2);
const store = await openEmbeddedStore({ folder });
await store.watch({ tenant: null, prefix: "" }, (event) => {
  if (event.kind === "reset") say("reset");
  else
    say(
      `changed ${event.key.name} ${event.stored.kind === "absent" ? "deleted" : event.stored.record.holder}`,
    );
});
say("watching");
process.stdin.resume();
