// Opens folders that may be damaged and reads all that is there; says per folder how that ended.
import { keyNamed, openEmbeddedStore, say } from "./common.mjs";

const [count, ...folders] = process.argv.slice(2);
for (const folder of folders) {
  say(`begin ${folder}`);
  say(`end ${folder} ${await probe(folder)}`);
}

async function probe(folder) {
  let store;
  try {
    store = await openEmbeddedStore({ folder });
  } catch (error) {
    return error.kind === "config" && !error.message.includes("\n") ? "refused" : `strange ${error.stack}`;
  }
  try {
    const keys = Array.from({ length: Number(count) }, (_, index) => keyNamed(`job/${index}`));
    const { records } = await store.read(keys);
    const kinds = new Map();
    for (const [index, stored] of records.entries()) {
      const wrong = stored.kind === "found" && stored.record.generation !== BigInt(index + 1);
      const kind = wrong ? "wrong" : stored.kind;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    await store.list({ tenant: "default", prefix: "", limit: 10_000 });
    return `opened ${JSON.stringify(Object.fromEntries(kinds))}`;
  } catch (error) {
    return error.name === "StoreError" ? `failed ${error.message}` : `strange ${error.stack}`;
  } finally {
    await store.close();
  }
}
