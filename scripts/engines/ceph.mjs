// Ceph's S3 gateway on a one-node cluster: a monitor (mon), a storage process (osd) and the gateway (rgw), all in one
// folder. A real S3 server that keeps conditional writes; another vendor's, so it proves nothing about AWS itself.
import { randomBytes, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cephAdminSocket } from "./ceph-admin-socket.mjs";
import { cephConfig } from "./ceph-config.mjs";
import { startEngine } from "./engine.mjs";
import { withPlace } from "./place.mjs";
import { firstLine, http } from "./probes.mjs";
import { requireProgram, run } from "./programs.mjs";
import { s3Request } from "./s3-request.mjs";

const BUCKET = "solehold";
const REGION = "us-east-1";
const KEYS = { accessKeyId: "test", secretAccessKey: "testtest" };
const MEMORY_IS_LOST =
  'ceph kept its objects in memory and its storage process was killed: start it with { storage: "disk" }, ' +
  "or kill and restart only the process named rgw";

/** @type {typeof import("./index.mjs").startCeph} */
export const startCeph = async ({ dataDir: wanted, storage = "memory" } = {}) => {
  if (storage !== "memory" && storage !== "disk") {
    throw new Error(`storage is ${JSON.stringify(storage)}: use "memory" or "disk"`);
  }
  const startedAt = performance.now();
  const version =
    /version (\S+)/.exec(await run(requireProgram("ceph", "ceph-mon"), ["--version"]))?.[1] ?? "unknown";

  return withPlace({ name: "ceph", dataDir: wanted, portCount: 2 }, async (place) => {
    const { dataDir, ports } = place;
    const [monitorPort = 0, gatewayPort = 0] = ports;
    const endpoint = `http://127.0.0.1:${gatewayPort}`;
    const configFile = join(dataDir, "ceph.conf");
    const fsid = randomUUID();
    writeFileSync(configFile, cephConfig({ dataDir, fsid, monitorPort, gatewayPort, storage }));
    for (const folder of ["mon", "osd"]) mkdirSync(join(dataDir, folder));

    /**
     * @param {string} program
     * @param {readonly string[]} args
     */
    const ceph = (program, ...args) =>
      run(requireProgram("ceph", program), ["-c", configFile, ...args], { cwd: dataDir });
    /**
     * @param {string} name
     * @param {string} program
     * @param {readonly string[]} args
     * @param {() => unknown} ready
     */
    const daemon = (name, program, args, ready) =>
      place.define({
        ...(name === "osd" && storage === "memory" ? { lossOnKill: MEMORY_IS_LOST } : {}),
        name,
        command: requireProgram("ceph", program),
        args: ["-f", "-c", configFile, ...args],
        logFile: join(dataDir, `${name}.out`),
        ready,
      });

    const monitor = daemon(
      "mon",
      "ceph-mon",
      ["-i", "a"],
      async () => (await firstLine(monitorPort, "")) === "ceph v2",
    );
    const store = daemon("osd", "ceph-osd", ["-i", "0"], async () => {
      const { state } = await cephAdminSocket(join(dataDir, "osd.0.asok"), "status");
      return state === "active";
    });
    const gateway = daemon(
      "rgw",
      "radosgw",
      ["-n", "client.rgw"],
      async () => (await http(endpoint)).status === 200,
    );

    await createKeyring(dataDir);
    await createMonitorMap({ dataDir, fsid, monitorPort });
    await ceph(
      "ceph-mon",
      "--mkfs",
      "-i",
      "a",
      "--monmap",
      join(dataDir, "monmap"),
      "--keyring",
      join(dataDir, "keyring"),
    );
    await monitor.start();
    const storeId = randomUUID();
    await Promise.all([
      ceph("ceph", "osd", "new", storeId, "0"),
      ceph("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", storeId),
    ]);
    await store.start();
    // Beside the gateway's own first start, which creates the pools: the two do not wait for each other.
    const userCreated = createUser(ceph);
    userCreated.catch(() => "awaited by prove");

    const prove = async () => {
      await userCreated;
      await proveConditionalWrites({ endpoint, region: REGION, ...KEYS });
    };
    return startEngine(
      {
        name: "ceph",
        version,
        urls: [endpoint],
        credentials: { ...KEYS, region: REGION, bucket: BUCKET },
        place,
        processes: [monitor, store, gateway],
        startOrder: "in turn",
        prove,
      },
      startedAt,
    );
  });
};

/** @param {string} dataDir */
async function createKeyring(dataDir) {
  const keyring = join(dataDir, "keyring");
  const owners = [
    ["mon.", "mon", "allow *"],
    ["client.admin", "mon", "allow *", "osd", "allow *", "mgr", "allow *"],
    ["client.rgw", "mon", "allow rw", "osd", "allow rwx"],
    ["osd.0", "mon", "allow profile osd", "osd", "allow *"],
  ];
  for (const [owner = "", ...capabilities] of owners) {
    const args = [keyring, "--gen-key", "-n", owner];
    if (!existsSync(keyring)) args.push("--create-keyring");
    for (let index = 0; index < capabilities.length; index += 2) {
      args.push("--cap", ...capabilities.slice(index, index + 2));
    }
    await run(requireProgram("ceph", "ceph-authtool"), args);
  }
}

/** @param {{ dataDir: string, fsid: string, monitorPort: number }} place */
function createMonitorMap({ dataDir, fsid, monitorPort }) {
  const address = ["--addv", "a", `[v2:127.0.0.1:${monitorPort}]`];
  const args = ["--create", ...address, "--fsid", fsid, "--enable-all-features", join(dataDir, "monmap")];
  return run(requireProgram("ceph", "monmaptool"), args);
}

/** @param {(program: string, ...args: string[]) => Promise<string>} ceph */
function createUser(ceph) {
  const keys = ["--access-key", KEYS.accessKeyId, "--secret-key", KEYS.secretAccessKey];
  return ceph(
    "radosgw-admin",
    "-n",
    "client.rgw",
    "user",
    "create",
    "--uid",
    "test",
    "--display-name",
    "test",
    ...keys,
  );
}

/**
 * The tests are worth nothing on a server that ignores conditions, and several do so silently.
 * @param {import("./s3-request.mjs").S3Place} place
 */
async function proveConditionalWrites(place) {
  const path = `/${BUCKET}/probe-${randomBytes(8).toString("hex")}`;
  /**
   * @param {string} what
   * @param {number} expected
   * @param {{ method: string, path: string, body?: string, headers?: Record<string, string> }} request
   */
  const expectStatus = async (what, expected, request) => {
    const reply = await s3Request(place, request);
    if (reply.status === expected) return reply;
    throw new Error(`ceph: ${what} gave ${reply.status} instead of ${expected}: ${reply.body.slice(0, 300)}`);
  };
  const absent = { "if-none-match": "*" };
  await expectStatus("creating the bucket", 200, { method: "PUT", path: `/${BUCKET}` });
  const created = await expectStatus("a first create", 200, {
    method: "PUT",
    path,
    body: "1",
    headers: absent,
  });
  await expectStatus("a second create", 412, { method: "PUT", path, body: "2", headers: absent });
  const etag = String(created.headers.etag).replaceAll('"', "");
  await expectStatus("a replacement", 200, { method: "PUT", path, body: "3", headers: { "if-match": etag } });
  await expectStatus("a stale replacement", 412, {
    method: "PUT",
    path,
    body: "4",
    headers: { "if-match": etag },
  });
  await expectStatus("deleting the probe", 204, { method: "DELETE", path });
}
