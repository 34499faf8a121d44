// A writer to be killed. Opens the folder given and appends for ever in before-reply mode, eight at a time,
// printing each trace id once its append was acknowledged. With "hold" it opens, says so, and waits.
import { writeSync } from "node:fs";
import { FileAuditTrail } from "solehold/internal";

const [folder, name, mode] = process.argv.slice(2);
const say = (line) => writeSync(1, `${line}\n`);

const trail = await FileAuditTrail.open({
  folder,
  durability: "before-reply",
  segmentBytes: 8192,
  anchorEvery: 16,
}).catch((error) => {
  say(error.code);
  process.exit(3);
});
say("open");

let count = 0;
async function appendForEver() {
  for (;;) {
    count += 1;
    const traceId = `${name}-${count}`;
    await trail.append({
      at: count,
      tenant: "acme",
      key: "killed",
      leaseId: "",
      action: "use",
      allowed: true,
      reason: "OK_DECISION_COMPUTE",
      reasonCode: 1,
      traceId,
      outcome: "applied",
    });
    say(traceId);
  }
}

if (mode === "hold") process.stdin.resume();
else await Promise.all(Array.from({ length: 8 }, appendForEver));
