// node failure-modes/one.mjs SUBJECT FAULT: one library under one fault; the last line is what was seen, as JSON.
import { BACKENDS } from "./backends.mjs";
import { FAULTS } from "./faults.mjs";
import { SUBJECTS } from "./subjects.mjs";

const [name, fault] = process.argv.slice(2);
const subject = SUBJECTS.find((each) => each.name === name);
const backend = await BACKENDS[subject.backend]();
console.log("started");
const seen = await FAULTS[fault].run({ subject, ...backend });
console.log(JSON.stringify(seen));
// What a library left open, and what it still waits for, is not of interest any more.
await backend.stop();
process.exit(0);
