// Tries to open folders; says how each was refused.
import { openEmbeddedStore, say } from "./common.mjs";

for (const folder of process.argv.slice(2)) {
  const { kind, message } = await openEmbeddedStore({ folder }).catch((error) => error);
  say(JSON.stringify({ kind, message }));
}
