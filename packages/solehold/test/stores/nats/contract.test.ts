/** The kit on a real NATS server: read directly, and read from the stream's leader as with replicas. */
import { afterAll, beforeAll, describe, it } from "vitest";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import type { LeaseKey } from "../../../src/core/index.ts";
import { openNatsStore } from "../../../src/stores/nats/index.ts";
import { kitProcess } from "../../conformance/child.ts";
import { EFFORT } from "../../conformance/effort.ts";
import { faultyClient } from "../../conformance/faulty.ts";
import { type Engine, startNats } from "../../engines/index.ts";
import { Admin } from "./admin.ts";

let server: Engine;
let admin: Admin;

beforeAll(async () => {
  server = await startNats();
  admin = new Admin(server.url);
  // As a bucket that an older tool made: without direct reads, and with a history.
  await admin.createBucket("by-leader", { allow_direct: false, max_msgs_per_subject: 3 });
});

afterAll(async () => {
  await server?.stop();
});

const openFaulty = () => faultyClient(server.url, (url) => openNatsStore({ url, timeoutMs: 700 }));

const open = () => openNatsStore({ url: server.url });
const corrupt = async ({ tenant, name }: LeaseKey): Promise<void> => {
  const key = (await admin.keys("solehold")).find((each) => each.endsWith(`.${tenant}.${name}`));
  await admin.put("solehold", key ?? "", "damage");
};

describeStore("NATS", { open, openSecond: open, openFaulty, corrupt }, { describe, it });
describeLeases(
  "NATS",
  { open, openSecond: open, openFaulty, child: () => kitProcess(server.url), patienceMs: 100_000 },
  { describe, it },
);

const openByLeader = () => openNatsStore({ url: `${server.url}/by-leader` });

describeStore(
  "NATS by the stream's leader",
  { open: openByLeader, openSecond: openByLeader, effort: EFFORT },
  { describe, it },
);
