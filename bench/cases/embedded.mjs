// The embedded store: durable leases in a folder, against LMDB itself and against what else locks on one machine.
import { join } from "node:path";
import { connect } from "solehold";
import { compete } from "../lib/compete.mjs";
import { HOW_TO_ADD_SQLITE, loadSqlite, lockfileLocks, sqlitePairs } from "../lib/file-locks.mjs";
import { LEAST, leastPairs } from "../lib/least-pairs.mjs";
import { lmdbPairs, openLmdb, VALUE } from "../lib/lmdb-floor.mjs";
import { coldNames, DOES_MORE, leasePairs, lockPairs, waitingPairs, warmNames } from "../lib/pairs.mjs";
import { withResources } from "../lib/resources.mjs";
import { aheadOfPeers, atLeast, rowOf } from "../lib/rows.mjs";

export const about = "Embedded store: acquire + release of a key, durable";

export function run({ pace, say }) {
  return withResources(async (resources) => {
    const database = resources.add(openLmdb(resources.folder()), (each) => each.close());
    const leases = resources.add(await connect(`embedded:${resources.folder()}`), (each) => each.close());
    const locks = lockfileLocks(resources.folder());
    const Sqlite = loadSqlite();
    const contenders = [
      { name: "raw lmdb", role: "floor", turn: lmdbPairs(database, warmNames()) },
      { name: "solehold", role: "ours", turn: leasePairs(leases, warmNames()) },
      {
        name: "raw lmdb, cold",
        role: "floor",
        turn: lmdbPairs(database, coldNames()),
        against: "raw lmdb, cold",
      },
      {
        name: "solehold, cold",
        role: "ours",
        turn: leasePairs(leases, coldNames()),
        against: "raw lmdb, cold",
      },
      {
        name: "solehold, acquire that may wait",
        role: "other",
        turn: waitingPairs(leases, warmNames("patient")),
      },
      { name: LEAST, role: "limit", turn: leastPairs(leases.manager.store, warmNames("least")) },
      {
        name: "proper-lockfile (not durable)",
        role: "peer",
        promises: "less",
        turn: lockPairs(locks, warmNames()),
      },
    ];
    if (Sqlite !== null) {
      const sqlite = sqlitePairs(Sqlite, join(resources.folder(), "locks.db"), warmNames());
      resources.add(sqlite, (each) => each.close());
      contenders.push({ name: "better-sqlite3", role: "peer", turn: sqlite.turn });
    }
    const groups = [];
    for (const inFlight of [1, 64]) {
      const title = `${inFlight} in flight`;
      groups.push(await compete({ title, inFlight, contenders, pace: inShortRounds(pace), say }));
    }
    return {
      conditions: [
        "one process, a folder on the local disk; every answered write is synced (proper-lockfile syncs nothing)",
        `raw lmdb: two compare-and-swaps of ${VALUE.length} bytes, as long as our records, all of one turn in one transaction`,
      ],
      doesMore: DOES_MORE,
      notes: Sqlite === null ? [HOW_TO_ADD_SQLITE] : [],
      groups,
      rows: groups.flatMap(rowsOf),
    };
  });
}

/** A disk that others use is slow for moments at a time: neighbours must be close enough to meet the same one. */
function inShortRounds({ rounds, roundMs, warmUpMs }) {
  return { rounds: rounds * 4, roundMs: roundMs / 4, warmUpMs };
}

function rowsOf(group) {
  return ["warm", "cold"].map((kind) =>
    rowOf(group, {
      title: `embedded: ${group.title}, ${kind} keys`,
      name: kind === "warm" ? "solehold" : "solehold, cold",
      field: "perSecond",
      bars: [atLeast(0.8), aheadOfPeers],
    }),
  );
}
