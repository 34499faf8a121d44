/** Faults that no proxy of bytes can make: a client that is cut between two replies, connections that swallow all. */
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from "node:net";
import { connect, headers } from "@nats-io/transport-node";
import type { NatsClient, NatsPackage } from "../../../src/stores/nats/client.ts";

/** The real client, which can be told to end itself as soon as it has delivered one more reply. */
export function cuttingPackage() {
  let armed = false;
  const natsPackage = packageWith((client) => {
    const subscribe = client.subscribe.bind(client);
    let cut = false;
    client.subscribe = (subject, { callback }) =>
      subscribe(subject, {
        callback: (error, message) => {
          // What else arrived in the same turn is not delivered any more.
          if (cut) return;
          callback(error, message);
          cut = armed;
          if (cut) void client.close();
          armed = false;
        },
      });
  });
  const cutAfterNextReply = (): void => {
    armed = true;
  };
  return { natsPackage, cutAfterNextReply };
}

/** The real client, but what it sends to subjects with this word waits until it is released. */
export function holdingPackage(word: string) {
  const held: (() => void)[] = [];
  const natsPackage = packageWith((client) => {
    const publish = client.publish.bind(client);
    client.publish = (subject, ...rest) => {
      if (subject.includes(word)) held.push(() => publish(subject, ...rest));
      else publish(subject, ...rest);
    };
  });
  /** How many were sent. */
  const release = (): number => {
    const all = held.splice(0);
    for (const send of all) send();
    return all.length;
  };
  return { natsPackage, release };
}

function packageWith(change: (client: NatsClient) => void): NatsPackage {
  return {
    headers: () => headers() as never,
    connect: async (options) => {
      const client = (await connect(options)) as unknown as NatsClient;
      change(client);
      return client;
    },
  };
}

/** A way to the server whose open connections can be made to swallow everything, while new ones work. */
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
