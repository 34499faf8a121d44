// PostgreSQL: acquire + release of a key, every write synced to disk before it is answered.
import { connect, openStore } from "solehold";
import { startPostgres } from "../../scripts/engines/index.mjs";
import { compete } from "../lib/compete.mjs";
import { LEAST, leastPairs } from "../lib/least-pairs.mjs";
import { coldNames, DOES_MORE, leasePairs, lockPairs, waitingPairs, warmNames } from "../lib/pairs.mjs";
import { knexOn, rawPairs, rawPool, verrouOnKnex } from "../lib/postgres-locks.mjs";
import { withResources } from "../lib/resources.mjs";
import { aheadOfPeers, atLeast, atMost, rowOf } from "../lib/rows.mjs";

export const about = "PostgreSQL: acquire + release of a key";

/** What the store takes by default, so everybody gets as many. */
const CONNECTIONS = 6;
const MANY_CONNECTIONS = 16;

export function run({ pace, say }) {
  return withResources(async (resources) => {
    const postgres = resources.add(await startPostgres(), (engine) => engine.stop());
    const pool = resources.add(await rawPool(postgres.url, CONNECTIONS), (each) => each.end());
    const wide = resources.add(await rawPool(postgres.url, MANY_CONNECTIONS), (each) => each.end());
    const knex = resources.add(knexOn(postgres.url, CONNECTIONS), (each) => each.destroy());
    const leases = resources.add(await connect(postgres.url), (each) => each.close());
    const store = resources.add(await openStore(postgres.url), (each) => each.close());
    const serverPids = postgres.processes.map(({ pid }) => pid);
    const contenders = contendersOn({ pool, wide, knex, leases, store });
    const groups = [];
    for (const inFlight of [1, 64]) {
      const title = `${inFlight} in flight`;
      // One in flight uses one connection, however many there are.
      const meant = contenders.filter(({ name }) => inFlight > 1 || !name.includes("16 connections"));
      groups.push(await compete({ title, inFlight, contenders: meant, pace, serverPids, say }));
    }
    return {
      conditions: [
        `PostgreSQL ${postgres.version} on loopback, fsync and synchronous_commit on; at most ${CONNECTIONS} connections each`,
        "warm: 16 keys a worker, again and again; cold: every pair on a key that neither server nor process ever saw",
      ],
      doesMore: DOES_MORE,
      groups,
      rows: groups.flatMap(rowsOf),
    };
  });
}

function contendersOn({ pool, wide, knex, leases, store }) {
  return [
    { name: "raw", role: "floor", turn: rawPairs(pool, warmNames()) },
    { name: "solehold", role: "ours", turn: leasePairs(leases, warmNames()) },
    { name: "raw, cold", role: "floor", turn: rawPairs(pool, coldNames()), against: "raw, cold" },
    { name: "solehold, cold", role: "ours", turn: leasePairs(leases, coldNames()), against: "raw, cold" },
    {
      name: "solehold, acquire that may wait",
      role: "other",
      turn: waitingPairs(leases, warmNames("patient")),
    },
    { name: LEAST, role: "limit", turn: leastPairs(store, warmNames("least")) },
    { name: "raw, 16 connections", role: "floor", turn: rawPairs(wide, warmNames("wide")) },
    { name: "@verrou/core (knex)", role: "peer", turn: lockPairs(verrouOnKnex(knex), warmNames()) },
  ];
}

function rowsOf(group) {
  return ["warm", "cold"].map((kind) => {
    const title = `postgres: ${group.title}, ${kind} keys`;
    const name = kind === "warm" ? "solehold" : "solehold, cold";
    return group.inFlight === 1
      ? rowOf(group, { title, name, field: "p50Ms", bars: [atMost(1.2)] })
      : rowOf(group, { title, name, field: "perSecond", bars: [atLeast(2.5), aheadOfPeers] });
  });
}
