// A real server process is killed in the middle of its work, again and again, and must have lost nothing
// that it had confirmed. SOLEHOLD_KILLS makes it more often.
import { describe, expect, it } from "vitest";
import { expectAudited } from "./support/audited.ts";
import { Dice } from "./support/hostile.ts";
import { ServerProcess } from "./support/process.ts";
import { type Answer, ask, tempFolder } from "./support/server.ts";

/** Fewer than under SDK clients, in sdk/kill.test.ts: this one looks at the bare protocol. */
const KILLS = Number(process.env.SOLEHOLD_KILLS ?? 5);
const WORKERS = 8;
const KEYS = 12;
const LONG_TTL_MS = 600_000;
/** What a holder subtracts from what it was promised: core's margin for the default drift. */
const margin = (ttlMs: number): number => Math.ceil(ttlMs * 0.01) + 2;

interface Grant {
  readonly name: string;
  readonly holder: string;
  readonly token: string;
  readonly fence: bigint;
  /** Own clock: when its answer was read. */
  readonly heardMs: number;
  /** Own clock: the belief ends here. */
  believedUntilMs: number;
  /** Given up by its holder, whether or not the server confirmed that. */
  over: boolean;
}

class Load {
  readonly grants: Grant[] = [];
  readonly broken: string[] = [];
  readonly #dice: Dice;
  #stopped = false;
  #turn = 0;
  #onGrant: () => void = () => undefined;

  constructor(seed: number) {
    this.#dice = new Dice(seed);
  }

  async run(url: string): Promise<void> {
    this.#stopped = false;
    await Promise.all(Array.from({ length: WORKERS }, (_, index) => this.#work(url, `worker-${index}`)));
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Resolves when there are so many more grants, however long the machine takes for them. */
  more(count: number): Promise<void> {
    const wanted = this.grants.length + count;
    return new Promise((resolve) => {
      this.#onGrant = () => {
        if (this.grants.length >= wanted) resolve();
      };
    });
  }

  async #work(url: string, holder: string): Promise<void> {
    while (!this.#stopped) {
      this.#turn += 1;
      const name = `job/${this.#dice.below(KEYS)}`;
      const token = `token-${this.#turn}`;
      const grant = await this.#acquire(url, { name, holder, token });
      if (grant === null) continue;
      if (this.#dice.chance(0.5)) await this.#renew(url, grant);
      if (this.#dice.chance(0.7)) await this.#release(url, grant);
    }
  }

  async #acquire(url: string, owner: { name: string; holder: string; token: string }): Promise<Grant | null> {
    const ttlMs = 200 + this.#dice.below(3_000);
    const sentMs = performance.now();
    const answer = await post(url, "acquire", { ...owner, ttlMs });
    if (answer?.status !== 200) return null;
    const { lease, validForMs } = answer.body;
    const believedUntilMs = sentMs + validForMs - margin(validForMs);
    const heardMs = performance.now();
    const grant = { ...owner, fence: BigInt(lease.fence), heardMs, believedUntilMs, over: false };
    this.#checkAgainst(grant, sentMs);
    this.grants.push(grant);
    this.#onGrant();
    return grant;
  }

  /** Above every fence of this key that was known before asking; and nobody else may believe now. */
  #checkAgainst(grant: Grant, sentMs: number): void {
    for (const other of this.grants) {
      if (other.name !== grant.name) continue;
      if (other.heardMs < sentMs && other.fence >= grant.fence) {
        this.broken.push(`${grant.name}: fence ${grant.fence} after ${other.fence}`);
      }
      if (!other.over && other.believedUntilMs > performance.now()) {
        this.broken.push(`${grant.name}: ${grant.holder} granted while ${other.holder} may believe`);
      }
    }
  }

  async #renew(url: string, grant: Grant): Promise<void> {
    const sentMs = performance.now();
    const { name, holder, token } = grant;
    const answer = await post(url, "renew", { name, holder, token, ttlMs: 2_000 });
    if (answer?.status !== 200) return;
    const { validForMs } = answer.body;
    grant.believedUntilMs = Math.max(grant.believedUntilMs, sentMs + validForMs - margin(validForMs));
  }

  async #release(url: string, grant: Grant): Promise<void> {
    grant.over = true;
    const { name, holder, token } = grant;
    await post(url, "release", { name, holder, token });
  }
}

/** Null when there was no answer: the outcome is unknown. */
async function post(url: string, command: string, body: object): Promise<Answer | null> {
  try {
    return await ask(`${url}/v1/leases/${command}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...body }),
    });
  } catch {
    return null;
  }
}

describe("a server killed with SIGKILL under load", () => {
  it(`loses no confirmed grant, shortens no lease, and its fences only grow: ${KILLS} times`, {
    timeout: 240_000 + KILLS * 20_000,
  }, async () => {
    const dataDir = await tempFolder();
    const dice = new Dice(7);
    const load = new Load(11);
    let server = await ServerProcess.start(dataDir);
    const keeper = { name: "kept/for/ever", holder: "keeper", token: "keeper-token" };
    const keptUntilMs = performance.now() + LONG_TTL_MS;
    const kept = await post(server.url, "acquire", { ...keeper, ttlMs: LONG_TTL_MS });
    for (let round = 0; round < KILLS; round += 1) {
      const running = load.run(server.url);
      await load.more(1 + dice.below(60));
      await server.kill();
      load.stop();
      await running;
      server = await ServerProcess.start(dataDir);
      await expectNothingLost(server.url, load);
      const still = await ask(`${server.url}/v1/lease?name=${encodeURIComponent(keeper.name)}`, {});
      expect(still.body).toMatchObject({ live: true, holder: "keeper", fence: kept?.body.lease.fence });
      expect(still.body.remainingMs).toBeGreaterThanOrEqual(
        Math.floor(keptUntilMs - performance.now()) - margin(LONG_TTL_MS),
      );
      const intruder = await post(server.url, "acquire", { name: keeper.name, holder: "intruder" });
      expect(intruder?.status).toBe(409);
    }
    expect(load.broken).toEqual([]);
    expect((await post(server.url, "renew", { ...keeper, ttlMs: LONG_TTL_MS }))?.body.lease.fence).toBe(
      kept?.body.lease.fence,
    );
    await server.stop();
    await expectAudited(dataDir, load.grants);
  });
});

async function expectNothingLost(url: string, { grants, broken }: Load): Promise<void> {
  const newest = new Map<string, Grant>();
  for (const grant of grants) newest.set(grant.name, grant);
  for (const grant of newest.values()) {
    const { status, body } = await ask(`${url}/v1/lease?name=${grant.name}`, {});
    const nowMs = performance.now();
    expect([grant.name, status]).toEqual([grant.name, 200]);
    const fence = BigInt(body.fence);
    if (fence < grant.fence)
      broken.push(`${grant.name}: confirmed ${grant.fence}, found ${fence} after the restart`);
    const believes = !grant.over && nowMs < grant.believedUntilMs;
    if (!believes) continue;
    if (fence !== grant.fence || !body.live)
      broken.push(`${grant.name}: the lease of ${grant.holder} was cut short`);
    const rival = await post(url, "acquire", { name: grant.name, holder: "rival" });
    if (rival?.status === 200 && performance.now() < grant.believedUntilMs) {
      broken.push(`${grant.name}: granted to a rival while ${grant.holder} may believe`);
    }
  }
}
