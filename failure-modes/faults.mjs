// The faults. Each is run with a library in a process of its own, on a Redis of its own behind a proxy, and says what was
// seen and whether that was safe. The bar is the same for all and is named in `good`.
import { connect as tcp } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { TTL_MS } from "./subjects.mjs";

/** As exact as this can see. */
const rounded = (ms) => Math.round(ms / 50) * 50;
const round = (ms) => `${rounded(ms)} ms`;
const since = (startMs) => performance.now() - startMs;

/** When the holder can first know that it is over; null if it cannot within the time. */
async function learnsAfter(handle, startMs, withinMs) {
  let signalledMs = null;
  handle.onLost?.(() => {
    signalledMs ??= since(startMs);
  });
  while (since(startMs) < withinMs) {
    if (signalledMs !== null) return signalledMs;
    if (!handle.isHeld()) return since(startMs);
    await sleep(10);
  }
  return signalledMs;
}

const judged = (isSafe, seen) => ({ isSafe, seen });

/** Opens, then takes: the time counts from just before the acquire, as a careful holder would count it. */
async function taken(subject, url) {
  const client = await subject.open(url);
  const startMs = performance.now();
  return { handle: await client.take("job"), startMs };
}

/** Another client that tries until it has the lock; null if it has not by then. */
async function takenByOther(subject, url, withinMs) {
  const client = await subject.open(url);
  const startMs = performance.now();
  while (since(startMs) < withinMs) {
    const { value } = await bounded(client.take("job"), withinMs);
    if (value !== undefined) return since(startMs);
    await sleep(20);
  }
  return null;
}

/** A result, or the error, or that neither came in time. */
const bounded = (promise, ms) =>
  Promise.race([
    promise.then(
      (value) => ({ value }),
      (error) => ({ error }),
    ),
    sleep(ms, { isLate: true }),
  ]);

async function rawRedis(url, ...words) {
  const { hostname, port } = new URL(url);
  const socket = tcp(Number(port), hostname);
  socket.write(`*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.end();
}

const learned = (afterMs, byMs = TTL_MS) =>
  afterMs === null
    ? judged(false, `believed until the end of the test, ${round(3 * TTL_MS)}`)
    : judged(rounded(afterMs) <= byMs, `knew after ${round(afterMs)}`);

export const FAULTS = {
  "frozen backend": {
    what: "The server stands still (SIGSTOP) just after the lock was taken.",
    good: "the holder can know by the end of the ttl",
    async run({ subject, server, viaProxy }) {
      const { handle, startMs } = await taken(subject, viaProxy);
      await server.pause();
      return learned(await learnsAfter(handle, startMs, 3 * TTL_MS));
    },
  },
  "crashed backend": {
    what: "The server is killed just after the lock was taken.",
    good: "the process goes on, and the holder can know by the end of the ttl",
    async run({ subject, server, viaProxy }) {
      const { handle, startMs } = await taken(subject, viaProxy);
      await server.kill();
      return learned(await learnsAfter(handle, startMs, 3 * TTL_MS));
    },
  },
  "lost reply": {
    what: "The lock is taken, and the reply is lost; the connection breaks.",
    good: "the caller has it, or it is free for others, before half of the ttl is over",
    async run({ subject, proxy, viaProxy, direct }) {
      const client = await subject.open(viaProxy);
      await (await client.take("warm-up")).release();
      proxy.dropReplies();
      const startMs = performance.now();
      const taking = client.take("job");
      taking.catch(() => undefined);
      await proxy.nextDroppedReply();
      proxy.heal();
      const result = await bounded(taking, 20_000);
      if (result.value?.isHeld()) {
        const afterMs = since(startMs);
        return judged(afterMs < TTL_MS / 2, `the caller has it after ${round(afterMs)}`);
      }
      const failed = result.isLate ? "no answer in 20 s" : "the caller got an error";
      const barredMs = await takenByOther(subject, direct, 6 * TTL_MS);
      if (barredMs === null) return judged(false, `${failed}; nobody could take it`);
      return judged(barredMs < TTL_MS / 2, `${failed}; free for others after ${round(barredMs)}`);
    },
  },
  "stalled acquire": {
    what: "The reply to the acquire comes after the ttl is over.",
    good: "nobody is handed a lock that is over",
    async run({ subject, proxy, viaProxy }) {
      const client = await subject.open(viaProxy);
      await (await client.take("warm-up")).release();
      proxy.delay(TTL_MS * 0.8);
      const result = await bounded(client.take("job"), 10 * TTL_MS);
      if (result.value === undefined) return judged(true, result.isLate ? "no answer" : "an error");
      return result.value.isHeld()
        ? judged(false, "a lock that had expired in Redis was handed out as held")
        : judged(false, "a lock was handed out that says it is over");
    },
  },
  "release after a takeover": {
    what: "The holder is cut off until another has the lock, comes back, and releases.",
    good: "the other one keeps it, and the release does not throw",
    async run({ subject, proxy, viaProxy, direct }) {
      const handle = await (await subject.open(viaProxy)).take("job");
      proxy.freeze();
      if ((await takenByOther(subject, direct, 10 * TTL_MS)) === null)
        return judged(false, "the other one could not take it");
      proxy.heal();
      const released = await bounded(
        Promise.resolve().then(() => handle.release()),
        8_000,
      );
      const third = await bounded((await subject.open(direct)).take("job"), 300);
      const kept = third.value === undefined;
      const how = released.isLate ? "did not return in 8 s" : released.error ? "threw" : "returned";
      return judged(
        kept && how === "returned",
        `${kept ? "the other one kept it" : "it was taken from the other one"}; release ${how}`,
      );
    },
  },
  "data loss": {
    what: "FLUSHALL while the lock is held, then another takes it.",
    good: "the first holder can know before half of its ttl is over",
    async run({ subject, direct }) {
      const { handle, startMs } = await taken(subject, direct);
      await rawRedis(direct, "FLUSHALL");
      const other = takenByOther(subject, direct, 8 * TTL_MS);
      const afterMs = await learnsAfter(handle, startMs, 3 * TTL_MS);
      await other;
      return learned(afterMs, TTL_MS / 2);
    },
  },
  "clock set back": {
    what: "The holder's wall clock is set back by an hour, and the server stands still.",
    good: "the holder can know by the end of the ttl",
    async run({ subject, server, direct }) {
      const { handle, startMs } = await taken(subject, direct);
      const now = Date.now;
      Date.now = () => now() - 3_600_000;
      await server.pause();
      return learned(await learnsAfter(handle, startMs, 3 * TTL_MS));
    },
  },
  "blocked event loop": {
    what: "The holder's event loop is blocked for two ttls; then it asks, in the same turn, whether it holds the lock.",
    good: "no",
    async run({ subject, direct }) {
      const handle = await (await subject.open(direct)).take("job");
      const untilMs = performance.now() + 2 * TTL_MS;
      while (performance.now() < untilMs);
      return handle.isHeld() ? judged(false, "said yes") : judged(true, "said no");
    },
  },
  "zombie writer": {
    what: "A paused holder writes after its successor did.",
    good: "there is a number that grows with every grant, which a resource can compare",
    async run({ subject, direct }) {
      const client = await subject.open(direct);
      const first = await client.take("job");
      const fence = first.fence;
      await first.release();
      const second = await client.take("job");
      if (fence === null) return judged(false, "no fencing token");
      return judged(second.fence > fence, "a fence that grew");
    },
  },
};
