/** The kit on the Azure Blob service (azurite), whose deletes keep conditions. */
import { beforeAll, describe, expect, it } from "vitest";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { ObjectNames } from "../../../src/stores/object/names.ts";
import { connectObjects } from "../../../src/stores/object/open.ts";
import { EFFORT } from "../../conformance/effort.ts";
import { type AzuritePlace, azuritePlace } from "./places.ts";

let place: AzuritePlace;

beforeAll(async () => {
  place = await azuritePlace();
});

const open = () => openObjectStore({ place, timeoutMs: 20_000 });

describeStore(
  "Azure Blob (azurite)",
  {
    open,
    openSecond: open,
    effort: EFFORT,
    corrupt: async (key) => {
      const objects = await connectObjects(place);
      const name = new ObjectNames("leases/").nameOf(key);
      const { object } = await objects.get(name);
      if (object === null) throw new Error("there is nothing to damage");
      await objects.putIfMatch(name, object.etag, Buffer.from("damage"));
      objects.close();
    },
  },
  { describe, it: (title, run) => it(title, run, 120_000) },
);

// Most of their time is waiting for the end of leases.
describeLeases(
  "Azure Blob (azurite)",
  { open, openSecond: open, effort: EFFORT, patienceMs: 100_000 },
  { describe, it: (title, run) => it.concurrent(title, run, 120_000) },
);

describe("Azure Blob (azurite)", () => {
  it("shows in the probe that its deletes keep conditions", async () => {
    const store = await open();
    expect(store.capabilities.conditionalDelete).toBe(true);
    await store.close();
  });
});
