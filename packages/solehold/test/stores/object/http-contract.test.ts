/** The kit on a generic HTTP server with ETags, whose deletes keep conditions and which cannot list. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { EFFORT } from "../../conformance/effort.ts";
import { faultyClient } from "../../conformance/faulty.ts";
import { FakeServer } from "./fake-server.ts";

const server = new FakeServer();
let url: string;

beforeAll(async () => {
  url = await server.start();
});

afterAll(() => server.stop());

/** One server, one clock. */
const open = () => openObjectStore({ url, clockSkewMs: 0, timeoutMs: 20_000 });
const openFaulty = () =>
  faultyClient(url.replace("http+etag:", "http:"), (through) =>
    openObjectStore({ url: through.replace("http:", "http+etag:"), clockSkewMs: 0, timeoutMs: 2_000 }),
  );

describeStore(
  "HTTP with ETags",
  {
    open,
    openSecond: open,
    openFaulty,
    effort: EFFORT,
    patienceMs: 100_000,
    corrupt: async ({ tenant, name }) => {
      const path = `/store/leases/%40${tenant}/${name}.lease.json`;
      const content = server.objects.get(path);
      if (content === undefined) throw new Error("there is nothing to damage");
      server.objects.set(path, Buffer.concat([content, Buffer.from("damage")]));
    },
  },
  { describe, it: (title, run) => it(title, run, 120_000) },
);

describeLeases(
  "HTTP with ETags",
  { open, openSecond: open, openFaulty, effort: EFFORT, patienceMs: 100_000 },
  { describe, it: (title, run) => it.concurrent(title, run, 120_000) },
);

describe("HTTP with ETags", () => {
  it("has no listing, and keeps conditions on deletes", async () => {
    const store = await open();
    expect([store.list, store.capabilities.conditionalDelete]).toEqual([undefined, true]);
    await store.close();
  });
});
