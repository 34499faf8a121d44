// NATS: acquire + release of a key, ours against create and delete in a key-value bucket.
import { Kvm } from "@nats-io/kv";
import { connect as connectNats } from "@nats-io/transport-node";
import { startNats } from "../../scripts/engines/index.mjs";
import { compete } from "../lib/compete.mjs";
import { coldNames, DOES_MORE, leasePairs, warmNames } from "../lib/pairs.mjs";
import { withResources } from "../lib/resources.mjs";
import { atLeast, notMeasured, rowOf } from "../lib/rows.mjs";
import { leasesOf } from "../lib/store-contender.mjs";

export const about = "NATS: acquire + release of a key";

/** A lone pair has no bar: a create is looked after once it was acknowledged. */
const barsOf = ({ inFlight }) => (inFlight === 1 ? [] : [atLeast(1.5)]);

export function run({ pace, say }) {
  return withResources(async (resources) => {
    const nats = resources.add(await startNats(), (engine) => engine.stop());
    const connection = resources.add(await connectNats({ servers: nats.url }), (each) => each.close());
    const bucket = await new Kvm(connection).create("raw");
    const leases = await leasesOf("solehold/nats", ({ openNatsStore }) => openNatsStore({ url: nats.url }));
    if (leases !== null) resources.add(leases, (each) => each.close());
    const serverPids = nats.processes.map(({ pid }) => pid);
    const contenders = contendersOn({ bucket, leases });
    const groups = [];
    for (const inFlight of [1, 64]) {
      const title = `${inFlight} in flight`;
      groups.push(await compete({ title, inFlight, contenders, pace, serverPids, say }));
    }
    return {
      conditions: [
        `NATS ${nats.version}, one server on loopback, file storage with its default sync (every two minutes); one connection each`,
        "raw: the client's create and delete; over a deleted key its create takes three round trips, over a new one (cold) one",
      ],
      doesMore: DOES_MORE,
      groups,
      rows: groups.flatMap((group) => rowsOf(group, leases)),
    };
  });
}

function contendersOn({ bucket, leases }) {
  const ours =
    leases === null
      ? []
      : [
          { name: "solehold", role: "ours", turn: leasePairs(leases, warmNames()) },
          {
            name: "solehold, cold",
            role: "ours",
            turn: leasePairs(leases, coldNames()),
            against: "raw, cold",
          },
        ];
  return [
    { name: "raw", role: "floor", turn: rawPairs(bucket, warmNames()) },
    { name: "raw, cold", role: "floor", turn: rawPairs(bucket, coldNames()), against: "raw, cold" },
    ...ours,
  ];
}

function rawPairs(bucket, names) {
  return async (worker, index) => {
    const key = names(worker, index).replaceAll("/", ".");
    const previousSeq = await bucket.create(key, "holder");
    await bucket.delete(key, { previousSeq });
  };
}

function rowsOf(group, leases) {
  return ["warm", "cold"].map((kind) => {
    const title = `nats: ${group.title}, ${kind} keys`;
    if (leases === null)
      return notMeasured(
        title,
        "this build has no solehold/nats",
        barsOf(group)
          .map(({ text }) => text)
          .join(", "),
      );
    return rowOf(group, {
      title,
      name: kind === "warm" ? "solehold" : "solehold, cold",
      field: "perSecond",
      bars: barsOf(group),
    });
  });
}
