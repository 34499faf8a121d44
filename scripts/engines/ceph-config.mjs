// The configuration of the one-node Ceph cluster. Everything stays in its folder and on loopback.

/**
 * @param {{ dataDir: string, fsid: string, monitorPort: number, gatewayPort: number, storage: "memory" | "disk" }} place
 */
export function cephConfig({ dataDir, fsid, monitorPort, gatewayPort, storage }) {
  return section("global", {
    fsid,
    "mon host": `[v2:127.0.0.1:${monitorPort}/0]`,
    "public addr": "127.0.0.1",
    "cluster addr": "127.0.0.1",
    "ms bind ipv6": "false",
    // Without keys the gateway never comes up.
    "auth cluster required": "cephx",
    "auth service required": "cephx",
    "auth client required": "cephx",
    keyring: `${dataDir}/keyring`,
    "run dir": dataDir,
    "log file": `${dataDir}/$name.log`,
    "admin socket": `${dataDir}/$name.asok`,
    "pid file": `${dataDir}/$name.pid`,
    "mon cluster log file": `${dataDir}/cluster.log`,
    // One copy, one placement group a pool: there is one storage process and no data worth keeping.
    "osd pool default size": "1",
    "osd pool default min size": "1",
    "osd pool default pg num": "1",
    "osd pool default pgp num": "1",
    "osd pool default pg autoscale mode": "off",
    "osd crush chooseleaf type": "0",
    "mon allow pool size one": "true",
    // The monitor collects changes for a second before it commits them; the first start makes a dozen in a row.
    "paxos propose interval": "0.02",
    "paxos min wait": "0.01",
  })
    .concat(section("mon", { "mon data": `${dataDir}/mon`, "mon initial members": "a" }))
    .concat(
      section("osd", {
        "osd data": `${dataDir}/osd`,
        "osd class load list": "*",
        "osd class default list": "*",
      }),
    )
    .concat(section("osd.0", storageSettings(storage)))
    .concat(
      section("client.rgw", {
        "rgw frontends": `beast endpoint=127.0.0.1:${gatewayPort}`,
        "rgw thread pool size": "64",
        "rgw rados pool pg num min": "1",
        // Nothing to replicate, expire or collect here.
        "rgw run sync thread": "false",
        "rgw enable gc threads": "false",
        "rgw enable lc threads": "false",
        "rgw enable quota threads": "false",
      }),
    );
}

/** @param {"memory" | "disk"} storage */
function storageSettings(storage) {
  const gibibyte = 1024 ** 3;
  return storage === "memory"
    ? {
        "osd objectstore": "memstore",
        "memstore device bytes": `${2 * gibibyte}`,
        // Its normal end is an exit on the spot, which for a store in memory is as bad as a kill.
        "osd fast shutdown": "false",
      }
    : // A sparse file: it occupies only what is written.
      {
        "osd objectstore": "bluestore",
        "bluestore block size": `${4 * gibibyte}`,
        "bluestore block create": "true",
      };
}

/**
 * @param {string} name
 * @param {Readonly<Record<string, string>>} settings
 */
function section(name, settings) {
  const lines = Object.entries(settings).map(([key, value]) => `${key} = ${value}\n`);
  return `[${name}]\n${lines.join("")}`;
}
