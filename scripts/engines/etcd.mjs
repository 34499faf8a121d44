// A real etcd cluster of several members, each its own process with its own folder, talking over loopback.
import { join } from "node:path";
import { startEngine } from "./engine.mjs";
import { withPlace } from "./place.mjs";
import { http } from "./probes.mjs";
import { processInfo } from "./proc.mjs";
import { requireProgram, run } from "./programs.mjs";
import { waitFor } from "./waiting.mjs";

const AGREE_TIMEOUT_MS = 30_000;

/** @type {typeof import("./index.mjs").startEtcd} */
export const startEtcd = async ({ dataDir: wanted, members = 3, flags = [] } = {}) => {
  if (!Number.isInteger(members) || members < 1 || members > 9) {
    throw new Error(`members is ${members}: an etcd cluster here has 1 to 9 members`);
  }
  const startedAt = performance.now();
  const program = requireProgram("etcd", "etcd");
  const version = /Version: (\S+)/.exec(await run(program, ["--version"]))?.[1] ?? "unknown";

  return withPlace({ name: "etcd", dataDir: wanted, portCount: members * 2 }, async (place) => {
    const { dataDir, ports } = place;
    const memberPlaces = Array.from({ length: members }, (_, index) => ({
      name: `etcd-${index + 1}`,
      client: `http://127.0.0.1:${ports[index * 2]}`,
      peer: `http://127.0.0.1:${ports[index * 2 + 1]}`,
    }));
    const cluster = memberPlaces.map(({ name, peer }) => `${name}=${peer}`).join(",");
    const processes = memberPlaces.map(({ name, client, peer }) =>
      place.define({
        name,
        command: program,
        args: [
          ...["--name", name, "--data-dir", join(dataDir, name), "--log-level", "warn", "--logger", "zap"],
          ...["--listen-client-urls", client, "--advertise-client-urls", client],
          ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
          ...["--initial-cluster", cluster, "--initial-cluster-state", "new"],
          ...["--initial-cluster-token", dataDir],
          ...flags,
        ],
        logFile: join(dataDir, `${name}.log`),
        ready: async () => JSON.parse((await http(`${client}/health`)).body).health === "true",
        // Debian's build refuses to start on what it calls unsupported platforms without this; harmless elsewhere.
        env: process.arch === "arm64" ? { ETCD_UNSUPPORTED_ARCH: "arm64" } : {},
      }),
    );

    /** The index of the leader, once every member that runs and is not paused names the same one. */
    async function agreedLeader() {
      const up = memberPlaces.filter((_, index) => isActive(processes[index]));
      const answers = await Promise.all(up.map(({ client }) => memberStatus(client)));
      const leaders = new Set(answers.map(({ leader }) => leader));
      const [leader] = leaders;
      const found = up[answers.findIndex(({ member }) => member === leader)];
      return leaders.size === 1 && found !== undefined ? memberPlaces.indexOf(found) : undefined;
    }

    async function leader() {
      const { index } = await waitFor("etcd's members name no common leader", AGREE_TIMEOUT_MS, async () => {
        const index = await agreedLeader();
        return index === undefined ? undefined : { index };
      });
      const member = processes[index];
      if (member === undefined) throw new Error(`etcd has no member ${index}`);
      return member;
    }

    const engine = await startEngine(
      {
        name: "etcd",
        version,
        urls: memberPlaces.map(({ client }) => client),
        place,
        processes,
        prove: async () => void (await leader()),
      },
      startedAt,
    );
    return Object.assign(engine, { leader });
  });
};

/** @param {import("./processes.mjs").ManagedProcess | undefined} member */
function isActive(member) {
  return member?.running === true && processInfo(member.pid)?.state !== "T";
}

/** @param {string} client */
async function memberStatus(client) {
  const reply = await http(`${client}/v3/maintenance/status`, { method: "POST", body: "{}" });
  const { header, leader } = JSON.parse(reply.body);
  return { member: String(header.member_id), leader: String(leader) };
}
