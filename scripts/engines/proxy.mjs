// A TCP proxy that misbehaves on command: it loses the replies of applied requests, holds traffic, delays it, or
// resets connections. Bytes that pass are never altered or reordered.
import { connect, createServer } from "node:net";
import { ProxyPipe } from "./proxy-pipe.mjs";

/** @type {typeof import("./index.mjs").startProxy} */
export const startProxy = async ({ targetPort, targetHost = "127.0.0.1" }) => {
  if (!Number.isInteger(targetPort) || targetPort < 1 || targetPort > 65_535) {
    throw new Error(`targetPort is ${targetPort}: give the port of the server behind the proxy`);
  }
  /** @type {import("./proxy-pipe.mjs").Faults} */
  const faults = { frozen: false, dropReplies: false, delayMs: 0 };
  /** @type {Set<{ requests: ProxyPipe, replies: ProxyPipe, reset(): void }>} */
  const connections = new Set();
  let currentPort = targetPort;
  let droppedBytes = 0;
  /** @type {(() => void)[]} */
  let waitingForDrop = [];

  // Half-open, so that the end of one direction is passed on as such and not as the end of both.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const upstream = connect({ port: currentPort, host: targetHost, allowHalfOpen: true, noDelay: true });
    const connection = {
      requests: new ProxyPipe(client, upstream, () => ({ ...faults, drop: false })),
      replies: new ProxyPipe(
        upstream,
        client,
        () => ({ ...faults, drop: faults.dropReplies }),
        (byteCount) => {
          droppedBytes += byteCount;
          for (const resolve of waitingForDrop.splice(0)) resolve();
        },
      ),
      reset() {
        client.resetAndDestroy();
        upstream.destroy();
      },
    };
    connections.add(connection);
    // While frozen, a client may be gone and the server not know it yet: the connection ends when both have ended.
    const forget = () => {
      if (client.closed && upstream.closed) connections.delete(connection);
    };
    client.once("close", forget);
    upstream.once("close", forget);
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port: 0, host: "127.0.0.1" }, () => resolve(undefined));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  const { port } = address;

  const flush = () => {
    for (const { requests, replies } of connections) for (const pipe of [requests, replies]) pipe.flush();
  };

  return {
    port,
    get connections() {
      return connections.size;
    },
    get droppedBytes() {
      return droppedBytes;
    },
    through(url) {
      const through = new URL(url);
      through.port = `${port}`;
      return url.endsWith("/") ? through.href : through.href.replace(/\/$/, "");
    },
    dropReplies() {
      faults.dropReplies = true;
      flush();
    },
    nextDroppedReply: () => new Promise((resolve) => waitingForDrop.push(resolve)),
    moveTo(port) {
      currentPort = port;
    },
    cut() {
      for (const connection of connections) connection.reset();
    },
    freeze() {
      faults.frozen = true;
    },
    delay(delayMs) {
      if (!Number.isFinite(delayMs) || delayMs < 0) throw new Error(`delayMs is ${delayMs}: give 0 or more`);
      faults.delayMs = delayMs;
      flush();
    },
    heal() {
      Object.assign(faults, { frozen: false, dropReplies: false, delayMs: 0 });
      for (const connection of connections) if (connection.replies.hasHole) connection.reset();
      flush();
    },
    async close() {
      for (const connection of connections) connection.reset();
      waitingForDrop = [];
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
