/** The kit on a real cluster of three members. */
import { describe, it } from "vitest";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import { openEtcdStore } from "../../../src/stores/etcd/index.ts";
import { kitProcess } from "../../conformance/child.ts";
import { EFFORT } from "../../conformance/effort.ts";
import { faultyClient } from "../../conformance/faulty.ts";
import { engineRecord } from "../../engines/index.ts";
import { newPrefix, opened, putRaw, storeUrl } from "./support.ts";

const { urls, url } = engineRecord("etcd");
const prefix = newPrefix();
const open = () => openEtcdStore({ url: storeUrl(urls, prefix) });

const openFaulty = () =>
  faultyClient(url, (through) => opened({ url: storeUrl([through], prefix), timeoutMs: 700 }));

describeStore(
  "etcd",
  {
    open,
    openSecond: open,
    openFaulty,
    corrupt: (key) => putRaw(url, prefix, key, "damage"),
    effort: EFFORT,
  },
  { describe, it },
);

describeLeases(
  "etcd",
  {
    open,
    openSecond: open,
    openFaulty,
    child: () => kitProcess(storeUrl(urls, prefix)),
    patienceMs: 100_000,
    effort: EFFORT,
  },
  { describe, it },
);
