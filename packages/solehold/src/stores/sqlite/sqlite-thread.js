// @ts-check
/**
 * A thread of the embedded store: one writes, one reads, so that a slow disk keeps neither this process's timers nor
 * its reads waiting. Plain JavaScript, because a thread runs what Node can load by itself. When it ends, SQLite's
 * connections and statements end with it.
 */
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { inspect } from "./database.js";
import { Damage } from "./integrity.js";
import { Reader } from "./reader.js";
import { Writer } from "./writer.js";

if (parentPort === null) throw new Error("this is a thread of the embedded store");
const port = parentPort;
/** @type {Writer | null} */
let writer = null;
/** @type {Reader | null} */
let reader = null;

/** @typedef {import("./protocol.ts").Requests} Requests */
/** @typedef {{ id: number, op: string, ask: never }} Message */

/** @type {Record<string, (ask: never) => unknown>} */
const operations = {
  inspect: (/** @type {Requests["inspect"]["ask"]} */ { folder, checkUpToBytes }) => {
    const { isThere, report } = inspect(folder, checkUpToBytes);
    return { isChecked: !isThere || report !== null };
  },
  create: (/** @type {Requests["create"]["ask"]} */ { folder, busyMs }) => {
    writer = new Writer(folder, busyMs, workerData.origin);
    return writer.state();
  },
  open: (/** @type {{ folder: string }} */ { folder }) => {
    reader = new Reader(folder);
    return null;
  },
  clock: (ask) => writer?.setClock(ask),
  read: (ask) => reader?.read(ask),
  list: (ask) => reader?.list(ask),
  changes: (ask) => reader?.changes(ask),
  walk: () => reader?.check(),
  check: (/** @type {{ folder: string }} */ { folder }) => inspect(folder, Number.POSITIVE_INFINITY).report,
  close: (/** @type {{ markMs: number | null }} */ { markMs }) => {
    try {
      if (markMs !== null) writer?.raiseMark(markMs);
    } catch {
      // A disk that cannot take it must not keep the store from being closed.
    }
    writer?.close();
    reader?.close();
    return null;
  },
};

/** @param {number} id @param {unknown} error */
function fail(id, error) {
  const { message, errcode, code, at = "before" } = /** @type {Error & Record<string, unknown>} */ (error);
  const why = error instanceof Damage ? "damaged" : code === "refused" ? code : (errcode ?? null);
  port.postMessage({ id, failure: { message, code: why, at } });
}

/** @param {Message} message */
async function answer({ id, op, ask }) {
  try {
    const reply = await operations[op]?.(ask);
    port.postMessage({ id, reply });
  } catch (error) {
    fail(id, error);
  }
  if (op === "close") port.close();
}

/** @param {readonly Message[]} messages */
function apply(messages) {
  try {
    const replies = writer?.apply(messages.map(({ ask }) => ask)) ?? [];
    for (const [index, { id }] of messages.entries()) port.postMessage({ id, reply: replies[index] });
  } catch (error) {
    for (const { id } of messages) fail(id, error);
  }
}

port.on("message", (/** @type {Message} */ first) => {
  /** @type {Message[]} */
  let writes = [];
  for (let message = first; ; ) {
    if (message.op === "apply") writes.push(message);
    else {
      if (writes.length > 0) apply(writes);
      writes = [];
      void answer(message);
    }
    const next = receiveMessageOnPort(port);
    if (next === undefined) break;
    message = next.message;
  }
  if (writes.length > 0) apply(writes);
});
