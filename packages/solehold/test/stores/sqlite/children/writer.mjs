// Raises its keys without end, four calls in flight; says every write that was acknowledged, then is killed.
import { keyNamed, openEmbeddedStore, recordNamed, say } from "./common.mjs";

const [folder, prefix] = process.argv.slice(2);
const store = await openEmbeddedStore({ folder });

async function raise(name) {
  const { records } = await store.read([keyNamed(name)]);
  let [expected, value] =
    records[0].kind === "found" ? [records[0].version, records[0].record.generation] : [null, 0n];
  for (;;) {
    value += 1n;
    const next = recordNamed(name, { generation: value });
    const { results } = await store.apply([{ key: next.key, expected, next }]);
    if (results[0].kind !== "applied") throw new Error(`${name} was ${results[0].kind}`);
    expected = results[0].version;
    say(`${name} ${value} ${expected}`);
  }
}

await Promise.all([1, 2, 3, 4].map((index) => raise(`${prefix}/${index}`)));
