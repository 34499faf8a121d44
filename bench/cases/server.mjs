// The server: acquire + release of a key over the network, every write synced and in the audit trail before it is
// answered, against etcd's lock service and against Redis that syncs every write.
import { Agent, request } from "node:http";
import { connect } from "solehold";
import { startEtcd, startRedis } from "../../scripts/engines/index.mjs";
import { compete } from "../lib/compete.mjs";
import { EtcdClient, lockServicePairs } from "../lib/etcd-locks.mjs";
import { coldNames, DOES_MORE, leasePairs, warmNames } from "../lib/pairs.mjs";
import { rawPairs, redisClient } from "../lib/redis-locks.mjs";
import { withResources } from "../lib/resources.mjs";
import { atLeastOf, rowOf } from "../lib/rows.mjs";
import { startServer } from "../lib/server-process.mjs";

export const about = "Server and SDK: acquire + release of a key, durable";

const ETCD = "etcd lock service";
const MOST_IN_FLIGHT = 64;

export function run({ pace, say }) {
  return withResources(async (resources) => {
    const redis = await startRedis({ flags: ["--appendfsync", "always"] });
    resources.add(redis, (engine) => engine.stop());
    const etcd = resources.add(await startEtcd({ members: 1 }), (engine) => engine.stop());
    const server = await startServer({ dataDir: resources.folder() });
    resources.add(server, (each) => each.stop());
    const unaudited = await startServer({ dataDir: resources.folder(), flags: ["--audit", "memory"] });
    resources.add(unaudited, (each) => each.stop());

    const onRedis = resources.add(redisClient(redis.url), (each) => each.disconnect());
    const onEtcd = resources.add(new EtcdClient(etcd.url), (each) => each.close());
    await onEtcd.openSession();
    const leases = resources.add(await connect(server.url), (each) => each.close());
    const others = resources.add(await connect(unaudited.url), (each) => each.close());
    const agent = resources.add(new Agent({ keepAlive: true, maxSockets: MOST_IN_FLIGHT }), (each) =>
      each.destroy(),
    );
    const contenders = [
      { name: "Redis, appendfsync always, raw", role: "floor", turn: rawPairs(onRedis, warmNames()) },
      { name: "solehold", role: "ours", turn: leasePairs(leases, warmNames()) },
      { name: "solehold, cold", role: "ours", turn: leasePairs(leases, coldNames()) },
      { name: "solehold, audit in memory", role: "other", turn: leasePairs(others, warmNames()) },
      { name: "solehold, plain HTTP", role: "other", turn: httpPairs(server.url, agent, warmNames("http")) },
      { name: ETCD, role: "peer", turn: lockServicePairs(onEtcd, warmNames()) },
    ];
    const serverPids = [redis, etcd].flatMap(({ processes }) => processes.map(({ pid }) => pid));
    serverPids.push(server.pid, unaudited.pid);
    const groups = [];
    for (const inFlight of [1, MOST_IN_FLIGHT]) {
      const title = `${inFlight} in flight`;
      groups.push(await compete({ title, inFlight, contenders, pace, serverPids, say }));
    }
    return {
      conditions: [
        `embedded store; Redis ${redis.version} with appendfsync always; etcd ${etcd.version}, one member; all on loopback, one connection each (plain HTTP: ${MOST_IN_FLIGHT})`,
        "the server time includes whatever idles beside the one that is measured",
      ],
      doesMore: `${DOES_MORE}, audit entry on disk for each`,
      groups,
      rows: groups.flatMap(rowsOf),
    };
  });
}

/** The HTTP API without the SDK. */
function httpPairs(url, agent, names) {
  let token = 0;
  const post = (op, body) =>
    new Promise((resolve, reject) => {
      const text = JSON.stringify(body);
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
      const call = request(`${url}/v1/leases/${op}`, { method: "POST", agent, headers }, (response) => {
        response.resume();
        response.once("end", () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`${op}: status ${response.statusCode}`)),
        );
      });
      call.once("error", reject);
      call.end(text);
    });
  return async (worker, index) => {
    token += 1;
    const lease = { name: names(worker, index), holder: `worker-${worker}`, token: `token-${token}` };
    await post("acquire", { ...lease, ttlMs: 30_000 });
    await post("release", lease);
  };
}

function rowsOf(group) {
  return ["warm", "cold"].map((kind) =>
    rowOf(group, {
      title: `server: ${group.title}, ${kind} keys`,
      name: kind === "warm" ? "solehold" : "solehold, cold",
      field: "perSecond",
      bars: group.inFlight === 1 ? [] : [atLeastOf(ETCD, 5)],
    }),
  );
}
