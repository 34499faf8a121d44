// Writes until it cannot; says which error it got and what is there after that; goes on when there is room again.
import { commands, keyNamed, openEmbeddedStore, recordNamed, say } from "./common.mjs";

const [folder] = process.argv.slice(2);
const store = await openEmbeddedStore({ folder });
let written = 0;

async function write(size) {
  const records = Array.from({ length: size }, (_, index) =>
    recordNamed(`job/${written + index}`, { note: "x".repeat(500) }),
  );
  await store.apply(records.map((next) => ({ key: next.key, expected: null, next })));
  written += size;
}

/** Many at once first, then fewer. */
for (const size of [500, 40, 1]) {
  for (let failed = false; !failed; ) {
    try {
      await write(size);
    } catch ({ kind, outcome, message }) {
      failed = true;
      say(JSON.stringify({ kind, outcome, message }));
    }
  }
}
let there = 0;
for (let start = 0; start < written; start += 500) {
  const keys = Array.from({ length: Math.min(500, written - start) }, (_, index) =>
    keyNamed(`job/${start + index}`),
  );
  const { records } = await store.read(keys);
  there += records.filter(({ kind }) => kind === "found").length;
}
say(JSON.stringify({ acknowledged: written, there }));
for await (const _line of commands()) {
  await write(1);
  say("written");
  break;
}
process.stdin.destroy();
await store.close();
