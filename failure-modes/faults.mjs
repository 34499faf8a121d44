// The faults. Each is run with a library in a process of its own, on a backend of its own behind a proxy, and says what was
// seen and whether that was safe. The bar is the same for all and is named in `good`. `needsServer`: a library without one
// cannot meet it.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
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
  // What is loaded or connected on first use is not part of the acquire.
  await (await client.take("warm-up")).release();
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

/** Whether another process, whose clock is right, gets the lock within the time. */
async function spawnedOther(subject, folder, withinMs) {
  const other = join(import.meta.dirname, "other.mjs");
  const options = { timeout: withinMs, killSignal: "SIGKILL" };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [other, subject.name, folder],
    options,
  ).catch((ended) => ended);
  return String(stdout).startsWith("taken");
}

/** How the release ended. */
async function released(handle) {
  const result = await bounded(
    Promise.resolve().then(() => handle.release()),
    8_000,
  );
  return result.isLate ? "did not return in 8 s" : result.error ? "threw" : "returned";
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

const learned = (afterMs, byMs = TTL_MS) =>
  afterMs === null
    ? judged(false, `believed until the end of the test, ${round(3 * TTL_MS)}`)
    : judged(rounded(afterMs) <= byMs, `knew after ${round(afterMs)}`);

export const FAULTS = {
  "frozen backend": {
    needsServer: true,
    what: "The server stands still (SIGSTOP) just after the lock was taken.",
    good: "the holder can know by the end of the ttl",
    async run({ subject, server, viaProxy }) {
      const { handle, startMs } = await taken(subject, viaProxy);
      await server.pause();
      return learned(await learnsAfter(handle, startMs, 3 * TTL_MS));
    },
  },
  "crashed backend": {
    needsServer: true,
    what: "The server is killed just after the lock was taken.",
    good: "the process goes on, and the holder can know by the end of the ttl",
    async run({ subject, server, viaProxy }) {
      const { handle, startMs } = await taken(subject, viaProxy);
      await server.kill();
      return learned(await learnsAfter(handle, startMs, 3 * TTL_MS));
    },
  },
  "lost reply": {
    needsServer: true,
    what: "The lock is taken, and the reply is lost; the connection breaks.",
    good: "the caller has it, or it is free for others, before half of the ttl is over",
    async run({ subject, proxy, viaProxy, direct, untilTaken }) {
      const client = await subject.open(viaProxy);
      await (await client.take("warm-up")).release();
      const drop = () => proxy.dropReplies();
      // Where an acquire is several calls, the reply to the last one is lost.
      if (client.take.length < 2) drop();
      const startMs = performance.now();
      const taking = client.take("job", drop);
      taking.catch(() => undefined);
      await untilTaken(proxy);
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
    needsServer: true,
    what: "The reply to the acquire comes after the ttl is over.",
    good: "nobody is handed a lock that is over",
    async run({ subject, proxy, viaProxy }) {
      const client = await subject.open(viaProxy);
      await (await client.take("warm-up")).release();
      proxy.delay(TTL_MS * 0.8);
      const result = await bounded(client.take("job"), 10 * TTL_MS);
      if (result.value === undefined) return judged(true, result.isLate ? "no answer" : "an error");
      return result.value.isHeld()
        ? judged(false, "a lock that was over was handed out as held")
        : judged(false, "a lock was handed out that says it is over");
    },
  },
  "replaced owner": {
    what: "The holder is cut off until another has the lock, comes back, and releases.",
    good: "the other one keeps it, and the release does not throw",
    async run({ subject, viaProxy, direct, cutOffUntilTaken }) {
      const handle = await (await subject.open(viaProxy)).take("job");
      if ((await cutOffUntilTaken(subject, takenByOther)) === null)
        return judged(false, "the other one could not take it");
      const how = await released(handle);
      const third = await bounded((await subject.open(direct)).take("job"), 300);
      const kept = third.value === undefined;
      return judged(
        kept && how === "returned",
        `${kept ? "the other one kept it" : "it was taken from the other one"}; release ${how}`,
      );
    },
  },
  "expired release": {
    what: "The holder is cut off until the lock is over, comes back, and releases. Nobody else wanted it.",
    good: "the release does not throw, and the next one gets the lock at once",
    async run({ subject, viaProxy, direct, cutOffUntilOver }) {
      const handle = await (await subject.open(viaProxy)).take("job");
      await cutOffUntilOver();
      const how = await released(handle);
      const afterMs = await takenByOther(subject, direct, 6 * TTL_MS);
      const next = afterMs === null ? "nobody could take it" : `the next one got it after ${round(afterMs)}`;
      return judged(
        how === "returned" && afterMs !== null && afterMs < TTL_MS / 4,
        `release ${how}; ${next}`,
      );
    },
  },
  "data loss": {
    what: "The backend loses all data (FLUSHALL, all keys or lock files deleted) while the lock is held; then another takes it.",
    good: "the first holder can know before half of its ttl is over",
    async run({ subject, server, direct, loseData }) {
      const { handle, startMs } = await taken(subject, direct);
      await loseData();
      const other =
        server === null
          ? spawnedOther(subject, direct, 8 * TTL_MS)
          : takenByOther(subject, direct, 8 * TTL_MS);
      // A file lock says whether anybody has it: it is asked when another has.
      if (server === null) await other;
      const afterMs = await learnsAfter(handle, startMs, 3 * TTL_MS);
      await other;
      return learned(afterMs, TTL_MS / 2);
    },
  },
  "skewed clock": {
    what: "The holder's wall clock is set back by an hour, and the server, if there is one, stands still. Another tries to take the lock.",
    good: "the holder can know by the end of the ttl, or goes on holding it alone",
    async run({ subject, server, direct }) {
      const { handle, startMs } = await taken(subject, direct);
      const now = Date.now;
      Date.now = () => now() - 3_600_000;
      if (server !== null) {
        await server.pause();
        return learned(await learnsAfter(handle, startMs, 3 * TTL_MS));
      }
      const other = spawnedOther(subject, direct, 3 * TTL_MS);
      const afterMs = await learnsAfter(handle, startMs, 3 * TTL_MS);
      const wasTaken = await other;
      if (!wasTaken) return judged(true, "went on holding it");
      return judged(
        false,
        afterMs === null
          ? "another took it, and the holder believed on"
          : `another took it; the holder knew after ${round(afterMs)}`,
      );
    },
  },
  "blocked loop": {
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
