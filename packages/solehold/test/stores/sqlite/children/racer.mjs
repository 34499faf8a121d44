// Raises one shared counter `wins` times; says the version of every win.
import { keyNamed, openEmbeddedStore, recordNamed, say } from "./common.mjs";

const [folder, wins] = process.argv.slice(2);
const store = await openEmbeddedStore({ folder });
for (let won = 0; won < Number(wins); ) {
  const { records } = await store.read([keyNamed("counter")]);
  const [stored] = records;
  const [expected, value] = stored.kind === "found" ? [stored.version, stored.record.generation] : [null, 0n];
  const next = recordNamed("counter", { generation: value + 1n });
  const { results } = await store.apply([{ key: next.key, expected, next }]);
  if (results[0].kind !== "applied") continue;
  won += 1;
  say(`${expected} ${results[0].version} ${value + 1n}`);
}
await store.close();
