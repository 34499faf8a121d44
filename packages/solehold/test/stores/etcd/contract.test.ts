/** The kit on a real cluster of three members. */
import { describe, it } from "vitest";
import { openEtcdStore } from "../../../src/stores/etcd/index.ts";
import { describeLeases, describeStore, type FaultyClient } from "../../../src/testing/index.ts";
import { engineRecord, startProxy } from "../../engines/index.ts";
import { newPrefix, putRaw, storeUrl } from "./support.ts";

const { urls, url } = engineRecord("etcd");
const prefix = newPrefix();
const open = () => openEtcdStore({ url: storeUrl(urls, prefix) });

async function openFaulty(): Promise<FaultyClient> {
  const proxy = await startProxy({ targetPort: Number(new URL(url).port) });
  const store = await openEtcdStore({ url: storeUrl([proxy.through(url)], prefix), timeoutMs: 700 });
  const close = store.close.bind(store);
  return {
    store: Object.assign(store, {
      close: async () => {
        await close();
        await proxy.close();
      },
    }),
    loseReplies: () => proxy.dropReplies(),
    holdRequests: () => proxy.freeze(),
    heal: () => proxy.heal(),
  };
}

describeStore(
  "etcd",
  {
    open,
    openSecond: open,
    openFaulty,
    corrupt: (key) => putRaw(url, prefix, key, "damage"),
    effort: "reduced",
  },
  { describe, it },
);

describeLeases("etcd", { open, openSecond: open, openFaulty, effort: "reduced" }, { describe, it });
