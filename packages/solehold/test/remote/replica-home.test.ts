// Where a key is at home, as a server says it, is where clients send its requests.
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { ManualEnv } from "../../src/env/index.ts";
import { homeOf, ReplicaTransport, routeOf } from "../../src/remote/replica-router.ts";
import type { RemoteTransport } from "../../src/remote/transport.ts";
import { StoreError } from "../../src/store/index.ts";

const REPLICAS = ["a", "b", "c"].map((nodeId) => ({ nodeId, url: `http://${nodeId}.pool`, weight: 1 }));

it("looks for servers within the time that the request may take", async () => {
  const env = new ManualEnv();
  const asked: [string, number][] = [];
  const silent: RemoteTransport = {
    send: async ({ path, timeoutMs }) => {
      asked.push([path, timeoutMs]);
      await nextTurn();
      await env.advance(timeoutMs);
      throw new StoreError("timeout", "no answer", { outcome: "unknown" });
    },
    events: async () => ({ close: () => undefined }),
    close: () => undefined,
  };
  const seeds = ["http://a"];
  const transport = new ReplicaTransport({ env, seeds, open: () => silent, callTimeoutMs: 250 });
  onTestFinished(() => transport.close());
  const request = { method: "POST", path: "/v1/leases/acquire", timeoutMs: 500 } as const;
  await expect(transport.send(request)).rejects.toThrow("no answer");
  expect(asked.slice(0, 2)).toEqual([
    ["/v1/replicas", 250],
    ["/v1/leases/acquire", 500 - 250],
  ]);
});

describe("the home of a key", () => {
  it("is the replica that a client asks", async () => {
    const asked: string[] = [];
    const open = (url: string): RemoteTransport => ({
      send: async ({ path }) => {
        if (path === "/v1/replicas") return { status: 200, body: { replicas: REPLICAS } };
        asked.push(url);
        return { status: 200, body: {} };
      },
      events: async () => ({ close: () => undefined }),
      close: () => undefined,
    });
    const transport = new ReplicaTransport({ env: new ManualEnv(), seeds: ["http://pool"], open });
    onTestFinished(() => transport.close());
    const keys = Array.from({ length: 30 }, (_, index) => ({ tenant: "default", name: `job/${index}` }));
    for (const key of keys)
      await transport.send({
        method: "POST",
        path: "/v1/leases/acquire",
        timeoutMs: 1,
        routeBy: routeOf(key),
      });
    expect(keys.map((key) => homeOf(key, REPLICAS)?.url)).toEqual(asked);
    expect(new Set(asked).size).toBe(3);
  });

  it("is the same for all slots of a name, and there is none without replicas", () => {
    const names = Array.from({ length: 20 }, (_, index) => `pool/${index}`);
    const homes = (of: readonly string[]) => of.map((name) => homeOf({ tenant: "default", name }, REPLICAS));
    expect(homes(names.map((name) => `${name}#slot/2`))).toEqual(homes(names));
    expect(homeOf({ tenant: "default", name: "pool" }, [])).toBe(null);
  });
});

it.each([
  ["http://pool:1", ["http://pool:2", "http://b.pool", "https://elsewhere"]],
  ["http://10.0.0.1,http://carpool", ["http://carpool", "https://elsewhere"]],
  ["https://pool", ["https://elsewhere"]],
  ["https://elsewhere,http://pool", ["https://elsewhere"]],
])(
  "a client that was given %s looks for a server at no announced address but %j",
  async (given, followed) => {
    const urls = [
      ...["http://pool:2", "http://b.pool", "http://carpool", "http://pool.evil", "http://pool@evil"],
      ...["http://0.0.0.0", "http://10.0.0.2", "ftp://pool", "https://elsewhere"],
    ];
    const replicas = urls.map((url) => ({ nodeId: url, url, weight: 1 }));
    const asked = new Set<string>();
    const open = (url: string): RemoteTransport => ({
      send: async () => {
        asked.add(url);
        return { status: 200, body: { replicas } };
      },
      events: async () => ({ close: () => undefined }),
      close: () => undefined,
    });
    const transport = new ReplicaTransport({ env: new ManualEnv(), seeds: given.split(","), open });
    onTestFinished(() => transport.close());
    await transport.send({ method: "GET", path: "/v1/lease", timeoutMs: 1 });
    expect(urls.filter((url) => asked.has(url))).toEqual(followed);
  },
);
