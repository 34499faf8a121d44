// A service to be killed, over an embedded store, with a durable audit. Sixteen loops acquire and release for ever;
// each trace id is printed once its command was acknowledged.
import { writeSync } from "node:fs";
import { openStore, StoreExecutor } from "solehold";
import { FileAuditTrail, LeaseService, leaseIdOf, realEnv } from "solehold/internal";

const [folder, name] = process.argv.slice(2);
const store = await openStore(`embedded:${folder}/data`);
const audit = await FileAuditTrail.open({
  folder: `${folder}/audit`,
  durability: "before-reply",
  segmentBytes: 65_536,
});
const executor = new StoreExecutor({ store });
const service = new LeaseService({ executor, audit, env: realEnv });

/** A line is small enough to be written whole or not at all; a full pipe is tried again. */
function print(line) {
  for (;;) {
    try {
      writeSync(1, line);
      return;
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

let count = 0;
async function work(worker) {
  const key = { tenant: "default", name: `job/${worker}` };
  const holder = `${name}-${worker}`;
  for (;;) {
    count += 1;
    const trace = `${name}-${count}`;
    const outcome = await service.execute(
      { op: "acquire", key, holder, ttlMs: 20 },
      { traceId: `${trace}-grant` },
    );
    if (outcome.kind !== "applied") continue;
    print(`${trace}-grant ${leaseIdOf(outcome.decision.lease)}\n`);
    const { token } = outcome;
    const released = await service.execute(
      { op: "release", key, holder, token },
      { traceId: `${trace}-release` },
    );
    if (released.kind === "applied") print(`${trace}-release ${leaseIdOf(released.decision.lease)}\n`);
  }
}
await Promise.all(Array.from({ length: 16 }, (_, worker) => work(worker)));
