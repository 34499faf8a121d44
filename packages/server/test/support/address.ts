/** An address that stays while the server behind it comes and goes: what a client is configured with. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export class StableAddress {
  readonly url: string;
  readonly #sockets = new Set<Socket>();
  #targetPort: number | null = null;

  private constructor(server: Server) {
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (client) => this.#serve(client));
  }

  static async open(): Promise<StableAddress> {
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const address = new StableAddress(server);
    onTestFinished(async () => {
      for (const socket of address.#sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
    return address;
  }

  /** From now on connections lead there; null: nobody is there. */
  leadTo(url: string | null): void {
    this.#targetPort = url === null ? null : Number(new URL(url).port);
  }

  /** Resets every open connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  #serve(client: Socket): void {
    if (this.#targetPort === null) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ port: this.#targetPort, host: "127.0.0.1", noDelay: true });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }
}
