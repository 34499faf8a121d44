// The few bytes needed to ask a server whether it is there, without any client library.
import { request } from "node:http";
import { connect } from "node:net";

const PROBE_TIMEOUT_MS = 2000;

/**
 * Connects, sends `message`, and resolves with what the server says up to its first line break.
 * @param {number} port
 * @param {string} message Empty for servers that speak first.
 * @returns {Promise<string>}
 */
export function firstLine(port, message) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" });
    let received = "";
    socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy(new Error(`no answer on port ${port}`)));
    socket.setEncoding("utf8");
    socket.once("connect", () => socket.write(message));
    socket.once("error", reject);
    socket.once("close", () => reject(new Error(`port ${port} closed after ${JSON.stringify(received)}`)));
    socket.on("data", (chunk) => {
      received += chunk;
      const end = received.indexOf("\n");
      if (end < 0) return;
      resolve(received.slice(0, end).trimEnd());
      socket.destroy();
    });
  });
}

/**
 * What a server says first to whoever connects: for greetings that are not lines.
 * @param {number} port
 * @returns {Promise<string>}
 */
export function firstBytes(port) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy(new Error(`no answer on port ${port}`)));
    socket.once("error", reject);
    socket.once("close", () => reject(new Error(`port ${port} closed without a word`)));
    socket.once("data", (chunk) => {
      resolve(chunk.toString("latin1"));
      socket.destroy();
    });
  });
}

/**
 * @typedef {object} HttpReply
 * @property {number} status
 * @property {string} body
 * @property {import("node:http").IncomingHttpHeaders} headers
 */

/**
 * @param {string} url
 * @param {{ method?: string, headers?: Record<string, string>, body?: string, timeoutMs?: number }} [options]
 * @returns {Promise<HttpReply>}
 */
export function http(url, { method = "GET", headers = {}, body = "", timeoutMs = PROBE_TIMEOUT_MS } = {}) {
  return new Promise((resolve, reject) => {
    // No keep-alive agent: a pooled connection to a server that a test is about to kill would be an error later.
    const outgoing = request(url, { method, headers, agent: false, timeout: timeoutMs }, (reply) => {
      let received = "";
      reply.setEncoding("utf8");
      reply.on("data", (chunk) => {
        received += chunk;
      });
      reply.once("end", () =>
        resolve({ status: reply.statusCode ?? 0, body: received, headers: reply.headers }),
      );
      reply.once("error", reject);
    });
    outgoing.once("timeout", () => outgoing.destroy(new Error(`no answer from ${url}`)));
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}
