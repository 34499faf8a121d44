/** A fault that no proxy of bytes can make: connections that swallow everything, while new ones work. */
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
