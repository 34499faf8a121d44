// A process that holds a lock until it is killed, or asked to stop: then it unlocks and ends.
import { open } from "./takeover-locks.mjs";

const { contender, url, ttlMs, name } = JSON.parse(process.argv[2]);
const { lock, stop } = await open(contender, url, ttlMs);
process.on("SIGTERM", async () => {
  await stop();
  process.exit(0);
});
// The first one also opens the connection.
await (await lock(`${name}/first`))();
// Before it is sent: no store can count the ttl from an earlier instant.
const askedAtMs = performance.timeOrigin + performance.now();
await lock(name);
// A peer that renews nothing by itself would let the process end.
setInterval(() => undefined, 60_000);
process.send({ askedAtMs });
