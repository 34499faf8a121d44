// One case in a process of its own: no case meets another's heap, compiled code or left-over timers, and one that ends
// badly takes no other with it. Run by run.mjs, which gets the result as a message.
import { paceOf } from "./pace.mjs";

const { name, quick, rounds, roundMs } = JSON.parse(process.argv[2]);
const { about, run } = await import(`../cases/${name}.mjs`);
const say = (message) => void process.stderr.write(`${name}: ${message}\n`);
const measured = await run({ quick, say, pace: paceOf({ quick, rounds, roundMs }) });
// What a peer leaves running must not keep the process.
process.send({ about, ...measured }, () => process.exit(0));
