// node failure-modes/one.mjs SUBJECT FAULT: one library under one fault; the last line is what was seen, as JSON.
import { startProxy, startRedis } from "../scripts/engines/index.mjs";
import { FAULTS } from "./faults.mjs";
import { SUBJECTS } from "./subjects.mjs";

const [name, fault] = process.argv.slice(2);
const subject = SUBJECTS.find((each) => each.name === name);
const server = await startRedis();
const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
const seen = await FAULTS[fault].run({
  subject,
  server,
  proxy,
  direct: server.url,
  viaProxy: proxy.through(server.url),
});
console.log(JSON.stringify(seen));
// What a library left open, and what it still waits for, is not of interest any more.
await server.stop();
process.exit(0);
