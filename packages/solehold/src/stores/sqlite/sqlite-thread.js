/**
 * A thread of the embedded store: one writes, one reads, so that a slow disk keeps neither this process's timers nor
 * its reads waiting. Plain JavaScript, because a thread runs what Node can load by itself. When it ends, SQLite's
 * connections and statements end with it.
 */
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { inspect } from "./database.js";
import { Reader } from "./reader.js";
import { Writer } from "./writer.js";

/** @import { Requests } from "./protocol.ts" */
/** @typedef {{ id: number, op: keyof Requests, args: never }} Message */

if (parentPort === null) throw new Error("this is a thread of the embedded store");
const port = parentPort;
/** @type {Writer} */
let writer;
/** @type {Reader} */
let reader;

/** @type {Omit<Requests, "apply">} All but the writes, which are done together. */
const operations = {
  inspect,
  create: (folder, busyMs) => {
    writer = new Writer(folder, busyMs, workerData.origin);
    return writer.state();
  },
  clock: (...args) => writer.setClock(...args),
  open: (folder) => {
    reader = new Reader(folder, workerData.origin);
  },
  read: (...args) => reader.read(...args),
  list: (...args) => reader.list(...args),
  changes: (...args) => reader.changes(...args),
  close: (markMs) => {
    try {
      if (markMs !== null) writer.raiseMark(markMs);
    } catch {
      // A disk that cannot take it must not keep the store from being closed.
    }
    writer?.close();
    reader?.close();
    port.close();
  },
};

/** One reply to each message, or the failure to all of them. @param {readonly Message[]} messages @param {() => readonly unknown[]} work */
function answer(messages, work) {
  try {
    const replies = work();
    for (const [index, { id }] of messages.entries()) port.postMessage({ id, reply: replies[index] });
  } catch (error) {
    const { message, errcode = null, at = "before" } = /** @type {Error & Record<string, unknown>} */ (error);
    for (const { id } of messages) port.postMessage({ id, failure: { message, code: errcode, at } });
  }
}

port.on("message", (/** @type {Message} */ first) => {
  const messages = [first];
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
    messages.push(next.message);
  const writes = messages.filter(({ op }) => op === "apply");
  if (writes.length > 0) answer(writes, () => writer.apply(writes.map(({ args }) => args)));
  for (const message of messages) {
    if (message.op === "apply") continue;
    const operation = /** @type {(...args: never) => unknown} */ (operations[message.op]);
    answer([message], () => [operation(.../** @type {never} */ (message.args))]);
  }
});
