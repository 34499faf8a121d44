/** Faults that the shared proxy cannot make: connections that swallow everything or end at a byte, while new ones work. */
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from "node:net";

export async function startTunnel(targetPort: number) {
  const pairs: (readonly [Socket, Socket])[] = [];
  const listener = createServer((near) => {
    const far = connectSocket(targetPort, "127.0.0.1");
    pairs.push([near, far]);
    near.on("error", () => undefined).pipe(far);
    far.on("error", () => undefined).pipe(near);
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    url: `nats://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    swallow: () => {
      for (const [near, far] of pairs) {
        near.unpipe(far).resume();
        far.unpipe(near).resume();
      }
    },
    close: () => {
      listener.close();
      for (const socket of pairs.flat()) socket.destroy();
    },
  };
}

/** A way to the server that ends each connection when the server has sent this many bytes on it. */
export async function startCutter(targetPort: number) {
  let limit = Number.POSITIVE_INFINITY;
  const sockets = new Set<Socket>();
  const listener = createServer((near) => {
    const far = connectSocket(targetPort, "127.0.0.1");
    let left = limit;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    }
    near.on("data", (bytes) => far.write(bytes)).on("close", () => far.destroy());
    far.on("close", () => near.destroy());
    far.on("data", (bytes) => {
      near.write(bytes.subarray(0, left));
      left -= bytes.length;
      if (left > 0) return;
      near.end(() => near.resetAndDestroy());
      far.destroy();
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    url: `nats://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    /** Ends the present connections, and later ones after so many bytes. */
    endAfter: (bytes: number) => {
      limit = bytes;
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close: () => {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
