// Fills a store with records of all sizes, changes and deletes some, says what must be there, and waits to be killed.
import { keyNamed, openEmbeddedStore, recordNamed, say } from "./common.mjs";

const [folder, count] = process.argv.slice(2);
let store = await openEmbeddedStore({ folder });
const there = new Map();

async function write(changes) {
  const { results } = await store.apply(
    changes.map(([name, next]) => ({
      key: keyNamed(name),
      expected: there.get(name)?.version ?? null,
      next,
    })),
  );
  for (const [index, [name, record]] of changes.entries()) {
    if (results[index].kind !== "applied") throw new Error(`${name} was ${results[index].kind}`);
    if (record === null) there.delete(name);
    else there.set(name, { version: results[index].version, generation: String(record.generation) });
  }
}

const records = Array.from({ length: Number(count) }, (_, index) => [
  `job/${index}`,
  recordNamed(`job/${index}`, {
    generation: BigInt(index + 1),
    note: "x".repeat(index % 50 === 0 ? 400 : index % 7),
    idempotency:
      index % 60 === 0
        ? { op: "acquire", keyHash: "k", fingerprint: "f", sealedToken: "s".repeat(2_500) }
        : null,
  }),
]);
await write(records);
// So much is in the database itself; what follows is in the write-ahead file.
await store.close();
store = await openEmbeddedStore({ folder });
// Names that are neighbours: other pages of the database are not in the write-ahead file.
const changed = records.filter(([name]) => name.startsWith("job/1"));
await write(changed.filter((_, index) => index % 9 === 0).map(([name]) => [name, null]));
for (let start = 0; start < changed.length; start += 10) {
  const some = changed.slice(start, start + 10);
  await write(some.map(([name, record]) => [name, { ...record, generation: record.generation + 1_000n }]));
}
say(JSON.stringify([...there]));
process.stdin.resume();
process.stdin.on("end", () => store.close());
