// A real server process is killed in the middle of its work, again and again, under SDK clients that hold, wait
// and take over. SOLEHOLD_KILLS makes it more often.
import { connect, type Lease, type Leases } from "solehold";
import { describe, expect, it, onTestFinished } from "vitest";
import { StableAddress } from "../support/address.ts";
import { expectAudited } from "../support/audited.ts";
import { Exclusion } from "../support/exclusion.ts";
import { Dice } from "../support/hostile.ts";
import { ServerProcess } from "../support/process.ts";
import { tempFolder, until } from "../support/server.ts";

const KILLS = Number(process.env.SOLEHOLD_KILLS ?? 5);
const CLIENTS = 4;
const KEYS = 3;
/** Several for one key: there always is a line. */
const WORKERS = 12;
const KEPT = 5;
/** Longer than any restart on a busy machine: these must be kept over all of them. */
const LONG_TTL_MS = 30_000;

class Worker {
  readonly #leases: Leases;
  readonly #exclusion: Exclusion;
  readonly #dice: Dice;
  turns = 0;
  isStopped = false;

  constructor(leases: Leases, exclusion: Exclusion, seed: number) {
    this.#leases = leases;
    this.#exclusion = exclusion;
    this.#dice = new Dice(seed);
  }

  /** Nothing but the lease may end a turn: a server that comes back needs no help from here. */
  async run(): Promise<void> {
    while (!this.isStopped) {
      const name = `job/${this.#dice.below(KEYS)}`;
      const ttl = 500 + this.#dice.below(2_500);
      try {
        await this.#leases.run(name, { ttl, wait: "forever" }, (lease) => this.#work(lease));
        this.turns += 1;
      } catch (error) {
        this.#exclusion.broken.push(`${name}: ${String(error)}`);
        return;
      }
    }
  }

  async #work(lease: Lease): Promise<void> {
    this.#exclusion.granted(lease);
    for (let step = this.#dice.below(4); step >= 0 && lease.isHeld(); step -= 1) {
      this.#exclusion.write(lease);
      await new Promise((resolve) => setTimeout(resolve, this.#dice.below(15)));
    }
  }
}

describe("a server killed with SIGKILL under SDK clients", () => {
  it(`loses no confirmed grant, never has two holders, shortens nothing, and is found again: ${KILLS} times`, {
    timeout: 240_000 + KILLS * 20_000,
  }, async () => {
    const dataDir = await tempFolder();
    const address = await StableAddress.open();
    const start = async (): Promise<ServerProcess> => {
      const started = await ServerProcess.start(dataDir, "--advertise-url", address.url);
      address.leadTo(started.url);
      return started;
    };
    let server = await start();
    const clients: Leases[] = [];
    for (let index = 0; index < CLIENTS; index += 1) {
      clients.push(await connect(address.url, { holder: `client-${index}` }));
    }
    onTestFinished(async () => void (await Promise.all(clients.map((client) => client.close()))));
    const exclusion = new Exclusion();
    const kept = await keep(clients, exclusion);
    const workers = Array.from({ length: WORKERS }, (_, index) => {
      return new Worker(clientOf(clients, index), exclusion, 100 + index);
    });
    const running = workers.map((worker) => worker.run());
    const dice = new Dice(7);
    for (let round = 0; round < KILLS; round += 1) {
      const wanted = exclusion.grants.length + 1 + dice.below(60);
      await until("there are more grants", () => exclusion.grants.length >= wanted, LONG_TTL_MS);
      address.leadTo(null);
      await server.kill();
      server = await start();
      await expectNothingLost(clientOf(clients, round), exclusion, kept);
      const before = workers.map(({ turns }) => turns);
      const worksAgain = (_: Leases, client: number): boolean =>
        workers.some(({ turns }, index) => index % CLIENTS === client && turns > (before[index] ?? 0));
      await until("every client works again", () => clients.every(worksAgain), LONG_TTL_MS);
      expect(exclusion.broken).toEqual([]);
    }
    for (const worker of workers) worker.isStopped = true;
    await Promise.all(running);
    for (const lease of kept) expect([lease.name, lease.signal.aborted]).toEqual([lease.name, false]);
    await Promise.all(kept.map((lease) => lease.release()));
    await server.stop();
    expect(exclusion.broken).toEqual([]);
    expect(exclusion.countsAgree()).toBe(true);
    await expectAudited(dataDir, exclusion.grants);
  });
});

function clientOf(clients: readonly Leases[], index: number): Leases {
  return clients[index % clients.length] as Leases;
}

async function keep(clients: readonly Leases[], exclusion: Exclusion): Promise<readonly Lease[]> {
  const names = Array.from({ length: KEPT }, (_, index) => `kept/${index}`);
  const leases = await Promise.all(
    names.map((name, index) => clientOf(clients, index).acquire(name, { ttl: LONG_TTL_MS })),
  );
  for (const lease of leases) exclusion.granted(lease);
  return leases;
}

/** What was confirmed before the kill stands after it, and lasts at least as long as its holder believes. */
async function expectNothingLost(
  observer: Leases,
  exclusion: Exclusion,
  kept: readonly Lease[],
): Promise<void> {
  const { broken } = exclusion;
  for (const lease of kept) {
    const askedMs = performance.now();
    const believedMs = lease.remaining();
    const seen = await observer.inspect(lease.name);
    expect(seen).toMatchObject({ live: true, holder: lease.holder, fence: lease.fence });
    const passedMs = performance.now() - askedMs;
    if ((seen?.remainingMs ?? 0) + passedMs + 1 < believedMs) broken.push(`${lease.name} was shortened`);
  }
  for (const lease of exclusion.latest()) {
    const seen = await observer.inspect(lease.name);
    const fence = seen?.fence ?? 0n;
    if (fence < lease.fence) broken.push(`${lease.name}: confirmed ${lease.fence}, found ${fence}`);
    if (lease.isHeld() && fence !== lease.fence) broken.push(`${lease.name}: ${lease.holder} was deposed`);
  }
}
