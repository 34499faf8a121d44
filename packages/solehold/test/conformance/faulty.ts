/** A client of a real server, through a proxy that the kit can disturb. The two end together. */

import type { FaultyClient } from "../../src/conformance/index.ts";
import type { LeaseStore } from "../../src/store/index.ts";
import { startProxy } from "../engines/index.ts";

/** `open` gets the URL of the server through the proxy. */
export async function faultyClient(
  serverUrl: string,
  open: (url: string) => Promise<LeaseStore>,
): Promise<FaultyClient> {
  const proxy = await startProxy({ targetPort: Number(new URL(serverUrl).port) });
  const store = await open(proxy.through(serverUrl));
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
