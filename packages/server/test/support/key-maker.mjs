// Adds an API key named after its argument to each data folder that comes in as a line, and prints that folder when it
// is done. With "dies" as its name it is killed while it writes: under the lock, with everything in the middle.
import { createInterface } from "node:readline";
import { KeyFile } from "@solehold/server";
import { realEnv } from "solehold/internal";

const [name] = process.argv.slice(2);
const deadly = { toJSON: () => process.kill(process.pid, "SIGKILL") };

console.log("ready");
for await (const dataDir of createInterface({ input: process.stdin })) {
  const key = { name: name === "dies" ? deadly : name, tenants: ["*"], prefixes: [""], actions: ["read"] };
  await new KeyFile(dataDir, realEnv).add(key);
  console.log(dataDir);
}
