// Opens and closes the store over and over.
import { openEmbeddedStore, say } from "./common.mjs";

const [folder, times] = process.argv.slice(2);
for (let time = 0; time < Number(times); time += 1) {
  const store = await openEmbeddedStore({ folder });
  await store.close();
}
say("done");
