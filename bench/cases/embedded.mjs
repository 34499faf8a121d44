// The embedded store: durable leases in a folder, against SQLite itself and against what else locks on one machine.
import { join } from "node:path";
import { connect, openStore } from "solehold";
import { compete } from "../lib/compete.mjs";
import {
  HOW_TO_ADD_SQLITE,
  loadSqlite,
  lockfileLocks,
  sqlitePairs as sqliteLockPairs,
} from "../lib/file-locks.mjs";
import { LEAST, leastPairs } from "../lib/least-pairs.mjs";
import { coldNames, DOES_MORE, leasePairs, lockPairs, waitingPairs, warmNames } from "../lib/pairs.mjs";
import { withResources } from "../lib/resources.mjs";
import { aheadOfPeers, atLeast, rowOf } from "../lib/rows.mjs";
import { openSqlite, sqlitePairs, VALUE } from "../lib/sqlite-floor.mjs";

export const about = "Embedded store: acquire + release of a key, durable";

export function run({ pace, say }) {
  return withResources(async (resources) => {
    const database = resources.add(await openSqlite(resources.folder()), (each) => each.close());
    const leases = resources.add(await connect(`embedded:${resources.folder()}`), (each) => each.close());
    const limit = resources.add(await openStore(`embedded:${resources.folder()}`), (each) => each.close());
    const locks = lockfileLocks(resources.folder());
    const Sqlite = loadSqlite();
    const contenders = [
      { name: "raw SQLite", role: "floor", turn: sqlitePairs(database, warmNames()) },
      { name: "solehold", role: "ours", turn: leasePairs(leases, warmNames()) },
      {
        name: "raw SQLite, cold",
        role: "floor",
        turn: sqlitePairs(database, coldNames()),
        against: "raw SQLite, cold",
      },
      {
        name: "solehold, cold",
        role: "ours",
        turn: leasePairs(leases, coldNames()),
        against: "raw SQLite, cold",
      },
      {
        name: "solehold, acquire that may wait",
        role: "other",
        turn: waitingPairs(leases, warmNames("patient")),
      },
      { name: LEAST, role: "limit", turn: leastPairs(limit, warmNames("least")) },
      {
        name: "proper-lockfile (not durable)",
        role: "peer",
        promises: "less",
        turn: lockPairs(locks, warmNames()),
      },
    ];
    if (Sqlite !== null) {
      const sqlite = sqliteLockPairs(Sqlite, join(resources.folder(), "locks.db"), warmNames());
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
        `raw SQLite: two compare-and-swaps of ${VALUE.length} bytes, as long as our records, all of one turn in one transaction`,
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
