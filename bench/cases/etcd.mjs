// etcd: acquire + release of a key, ours against bare transactions and against the Lock of etcd3.
import { startEtcd } from "../../scripts/engines/index.mjs";
import { compete } from "../lib/compete.mjs";
import {
  BareEtcdClient,
  EtcdClient,
  etcd3Client,
  etcd3Locks,
  lockServicePairs,
  rawPairs,
} from "../lib/etcd-locks.mjs";
import { coldNames, DOES_MORE, leasePairs, lockPairs, warmNames } from "../lib/pairs.mjs";
import { withResources } from "../lib/resources.mjs";
import { atLeast, atLeastOf, atMost, notMeasured, rowOf } from "../lib/rows.mjs";
import { leasesOf } from "../lib/store-contender.mjs";

export const about = "etcd: acquire + release of a key";

const ETCD3 = "etcd3 Lock";

export function run({ pace, say }) {
  return withResources(async (resources) => {
    const etcd = resources.add(await startEtcd({ members: 1 }), (engine) => engine.stop());
    const client = resources.add(new EtcdClient(etcd.url), (each) => each.close());
    await client.openSession();
    const bare = resources.add(new BareEtcdClient(etcd.url, client.session), (each) => each.close());
    const etcd3 = resources.add(etcd3Client(etcd.url), (each) => each.close());
    const leases = await leasesOf("solehold/etcd", ({ openEtcdStore }) =>
      openEtcdStore({ url: etcd.url.replace(/^http/, "etcd") }),
    );
    if (leases !== null) resources.add(leases, (each) => each.close());
    const serverPids = etcd.processes.map(({ pid }) => pid);
    const contenders = contendersOn({ client, bare, etcd3, leases });
    const groups = [];
    for (const inFlight of [1, 64]) {
      const title = `${inFlight} in flight`;
      groups.push(await compete({ title, inFlight, contenders, pace, serverPids, say }));
    }
    return {
      conditions: [
        `etcd ${etcd.version}, one member on loopback, synced as it always is; one connection each`,
        "ours, raw and the lock service speak through @grpc/grpc-js, as etcd3 does; the bare one through Node's HTTP/2",
        "raw and etcd's lock service use one etcd lease for all keys; etcd3 makes one for every lock, as it does by default",
      ],
      doesMore: DOES_MORE,
      groups,
      rows: groups.flatMap((group) => rowsOf(group, leases)),
    };
  });
}

function contendersOn({ client, bare, etcd3, leases }) {
  const ours =
    leases === null
      ? []
      : [
          { name: "solehold", role: "ours", turn: leasePairs(leases, warmNames()) },
          { name: "solehold, cold", role: "ours", turn: leasePairs(leases, coldNames()) },
        ];
  return [
    { name: "raw", role: "floor", turn: rawPairs(client, warmNames()) },
    ...ours,
    { name: "raw, HTTP/2 alone", role: "other", turn: rawPairs(bare, warmNames("bare")) },
    { name: ETCD3, role: "peer", turn: lockPairs(etcd3Locks(etcd3), warmNames()) },
    { name: "etcd lock service", role: "peer", turn: lockServicePairs(client, warmNames()) },
  ];
}

function rowsOf(group, leases) {
  return ["warm", "cold"].map((kind) => {
    const title = `etcd: ${group.title}, ${kind} keys`;
    const isLone = group.inFlight === 1;
    const bars = isLone ? [atMost(1.2)] : [atLeast(3), atLeastOf(ETCD3, 2)];
    if (leases === null)
      return notMeasured(title, "this build has no solehold/etcd", bars.map(({ text }) => text).join(", "));
    const name = kind === "warm" ? "solehold" : "solehold, cold";
    return rowOf(group, { title, name, field: isLone ? "p50Ms" : "perSecond", bars });
  });
}
