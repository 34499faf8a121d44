// A server with a past: half an hour of a small company's leases, played on a clock that this file moves, then kept
// going in real time. For pictures, and to try the dashboard: node scripts/dashboard/demo.mjs
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createLog, resolveConfig, startServer } from "@solehold/server";
import { ManualEnv } from "solehold/internal";

const PAST_MS = 30 * 60_000;
const STEP_MS = 2_500;
const MINUTE = 60_000;
const HOT = "billing/close-month";

const SERVICES = [
  ...["reports/nightly", "search/reindex", "mail/outbox", "inventory/sync", "ledger/writer", "cron/hourly"],
  ...["tenants/acme/migrate", "tenants/globex/migrate", "webhooks/dispatcher", "sessions/sweeper"],
  ...["prices/import", "exports/monthly", "cache/warm", "replica/eu-west/promote", "invoices/numbering"],
];
const PURPOSES = ["Operation", "StateWrite", "MigrationHandoff"];

/**
 * @typedef {{ url: string, close(): Promise<void> }} Demo
 * @returns {Promise<Demo>}
 */
export async function startDemo({ port = "0" } = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), "solehold-demo-"));
  const env = new ManualEnv({ wallMs: Date.now() - PAST_MS, seed: 7 });
  const config = resolveConfig({
    flags: { port, store: "memory:", audit: "background", dataDir },
  });
  const server = await startServer(config, { log: createLog("silent"), env });
  const world = new World(server.url, env);
  let atMs = 0;
  // Playing the past takes a while, which has to be played as well.
  for (; env.wallMs() < Date.now() - STEP_MS; atMs += STEP_MS) {
    await world.step(atMs);
    await env.advance(STEP_MS);
  }
  let isOpen = true;
  let shownMs = performance.now();
  const goOn = (async () => {
    for (; isOpen; atMs += STEP_MS) {
      await world.step(atMs);
      for (let part = 0; part < 25 && isOpen; part += 1) {
        await sleep(100);
        const nowMs = performance.now();
        await env.advance(nowMs - shownMs);
        shownMs = nowMs;
      }
    }
  })();
  return {
    url: server.url,
    async close() {
      isOpen = false;
      await goOn;
      let isClosed = false;
      const closing = server.close().finally(() => {
        isClosed = true;
      });
      while (!isClosed) {
        await env.advance(50);
        await sleep(1);
      }
      await closing;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

class World {
  #url;
  #env;
  /** What is held, and until when it is renewed. @type {Map<string, { holder: string, untilMs: number }>} */
  #held = new Map();
  #jobs = 0;

  /** @param {string} url @param {ManualEnv} env */
  constructor(url, env) {
    this.#url = url;
    this.#env = env;
  }

  /** @param {number} atMs Since the beginning. */
  async step(atMs) {
    for (const [name, { holder, untilMs }] of this.#held) {
      if (atMs < untilMs) {
        if ((atMs / STEP_MS + name.length) % 4 === 0)
          await this.#send("renew", { name, holder, token: holder, ttlMs: 30_000 });
      } else {
        await this.#send("release", { name, holder, token: holder });
        this.#held.delete(name);
      }
    }
    for (const [index, name] of SERVICES.entries()) {
      if (this.#held.has(name) || this.#env.random() < 0.6) continue;
      const purpose = PURPOSES[index % 7 === 3 ? 2 : index % 3 === 1 ? 1 : 0];
      await this.#take(
        name,
        `${name.split("/")[0]}-${1 + Math.floor(this.#env.random() * 3)}`,
        atMs,
        purpose,
      );
    }
    this.#jobs += 1;
    if (this.#jobs % 4 === 0)
      await this.#take(`orders/${40_000 + this.#jobs}`, `worker-${this.#jobs % 9}`, atMs);
    for (const [index, card] of ["trainer-1", "trainer-2", "notebook"].entries())
      if (this.#jobs % 8 === index)
        await this.#send("acquire", { name: "gpu/a100", holder: card, token: card, slots: 3, ttlMs: 25_000 });
    if (this.#jobs % 6 === 0) await this.#send("acquire", { name: "ledger/writer", holder: "standby" });
    await this.#closeMonth(atMs);
  }

  /** @param {string} name @param {string} holder @param {number} atMs */
  async #take(name, holder, atMs, purpose = "Operation") {
    const got = await this.#send("acquire", { name, holder, token: holder, ttlMs: 30_000, purpose });
    if (got.granted)
      this.#held.set(name, { holder, untilMs: atMs + 20_000 + this.#env.random() * 9 * MINUTE });
  }

  /** The lease that has its own picture: every way in which a tenure can end, waiters and denials. */
  async #closeMonth(atMs) {
    const at = (/** @type {number} */ minute) =>
      Math.floor(atMs / STEP_MS) === Math.floor((minute * MINUTE) / STEP_MS);
    const owner = (/** @type {string} */ holder) => ({ name: HOT, holder, token: holder });
    const request = { ttlMs: 60_000, purpose: "StateWrite" };
    const take = (/** @type {string} */ holder) => this.#send("acquire", { ...owner(holder), ...request });
    const wait = async (/** @type {string} */ holder, /** @type {number} */ minutes) => {
      let isAnswered = false;
      const answer = this.#send("acquire", { ...owner(holder), ...request, waitMs: minutes * MINUTE });
      void answer.then(() => {
        isAnswered = true;
      });
      while (!isAnswered && !(await this.#isWaiting(holder))) await sleep(5);
    };
    const isSilent = atMs > 13 * MINUTE && atMs < 15 * MINUTE;
    if ((atMs / STEP_MS) % 8 === 0 && !isSilent) {
      const { holder, live } = await this.#get(`/v1/lease?name=${HOT}`);
      if (live) await this.#send("renew", { ...owner(holder), ttlMs: 60_000 });
    }
    if (at(4)) await take("billing-1");
    if (at(6) || at(7.5)) await take("billing-3");
    if (at(8.2)) await wait("billing-2", 4);
    if (at(9)) await this.#send("break", { name: HOT, periodMs: MINUTE });
    if (at(9.6)) await this.#send("release", owner("billing-1"));
    if (at(11.5)) await take("billing-1");
    if (at(12)) await wait("billing-3", 5);
    if (at(17)) await wait("billing-2", 5);
    if (at(19.2)) await this.#send("revoke", { name: HOT });
    if (at(22)) await take("billing-3");
    if (at(24)) {
      await this.#send("handoff", { ...owner("billing-2"), successor: "billing-1", withinMs: 30_000 });
      await take("billing-1");
    }
    if (at(28.4)) await wait("billing-3", 5);
    if (at(29.1)) await wait("billing-2", 5);
  }

  /** @param {string} holder */
  async #isWaiting(holder) {
    const { waiters } = await this.#get(`/v1/queue?name=${HOT}`);
    return waiters.some((/** @type {{ holder: string }} */ each) => each.holder === holder);
  }

  /** @param {string} path */
  async #get(path) {
    return await (await fetch(`${this.#url}${path}`)).json();
  }

  /** @param {string} command @param {object} body */
  async #send(command, body) {
    const answer = fetch(`${this.#url}/v1/leases/${command}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }).then(async (response) => ({ granted: response.ok, body: await response.json() }));
    return await answer.catch(() => ({ granted: false, body: null }));
  }
}

if (process.argv[1] === import.meta.filename) {
  const demo = await startDemo({ port: "7077" });
  console.log(`${demo.url} (Ctrl-C ends it)`);
  process.once("SIGINT", () => void demo.close().then(() => process.exit(0)));
}
