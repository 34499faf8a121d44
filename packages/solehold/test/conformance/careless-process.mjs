// A process of the kit on a store that compares, waits, and then writes whatever has come between.
import { setTimeout as delay } from "node:timers/promises";
import { openStore } from "solehold";
import { runKitProcess } from "solehold/testing";

const [url = ""] = process.argv.slice(2);

async function openCareless() {
  const store = await openStore(url);
  const versionOf = (stored) => (stored.kind === "found" ? stored.version : null);
  return {
    name: store.name,
    capabilities: store.capabilities,
    now: () => store.now(),
    read: (keys) => store.read(keys),
    list: (query) => store.list(query),
    close: () => store.close(),
    apply: async (writes) => {
      const keys = writes.map(({ key }) => key);
      const seen = (await store.read(keys)).records;
      if (writes.some(({ expected }, index) => versionOf(seen[index]) !== expected))
        return await store.apply(writes);
      // Others compare meanwhile, and find what this one found.
      await delay(80);
      for (;;) {
        const current = (await store.read(keys)).records;
        const overwriting = writes.map((write, index) => ({ ...write, expected: versionOf(current[index]) }));
        const answer = await store.apply(overwriting);
        if (answer.results.every(({ kind }) => kind === "applied")) return answer;
      }
    },
  };
}

await runKitProcess(openCareless);
