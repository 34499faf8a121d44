// Writes until it cannot; says what it was told, what is there after that, and whether it can go on.
import { keyNamed, openEmbeddedStore, recordNamed, say } from "./common.mjs";

const [folder] = process.argv.slice(2);
const store = await openEmbeddedStore({ folder });
await store.watch({ tenant: null, prefix: "" }, () => undefined);
let written = 0;

/** Many at once first, then fewer. One alone must not fail within LMDB: see space.ts. */
for (const size of [500, 40]) {
  for (let failed = false; !failed; ) {
    const records = Array.from({ length: size }, (_, index) =>
      recordNamed(`job/${written + index}`, { note: "x".repeat(500) }),
    );
    try {
      await store.apply(records.map((next) => ({ key: next.key, expected: null, next })));
      written += size;
    } catch ({ kind, outcome, message }) {
      failed = true;
      say(JSON.stringify({ kind, outcome, message }));
    }
  }
}
const names = Array.from({ length: written + 500 }, (_, index) => keyNamed(`job/${index}`));
const { records } = await store.read(names);
const there = records.filter(({ kind }) => kind === "found").length;
say(JSON.stringify({ acknowledged: written, there }));
const { results } = await store.apply([{ key: names[0], expected: records[0].version, next: null }]);
say(JSON.stringify({ deleted: results[0].kind }));
await store.close();
