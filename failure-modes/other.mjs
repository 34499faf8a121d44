// node failure-modes/other.mjs SUBJECT FOLDER: another process that tries until it has the lock, says so, and is killed, so
// that it releases nothing.
import { setTimeout as sleep } from "node:timers/promises";
import { SUBJECTS } from "./subjects.mjs";

const [name, folder] = process.argv.slice(2);
const client = await SUBJECTS.find((each) => each.name === name).open(folder);
while (
  !(await client.take("job").then(
    () => true,
    () => false,
  ))
)
  await sleep(20);
process.stdout.write("taken\n", () => process.kill(process.pid, "SIGKILL"));
