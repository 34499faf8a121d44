// Says the store's time whenever it is asked.
import { commands, openEmbeddedStore, say } from "./common.mjs";

const [folder] = process.argv.slice(2);
const store = await openEmbeddedStore({ folder });
say("open");
for await (const _line of commands()) say(`time ${store.now()}`);
await store.close();
