/**
 * A way to a PostgreSQL server that sees every message. It can keep back what the server says, hold back what a client
 * sends (what was sent before arrives, the rest of that connection does not), and keep new connections waiting.
 */
import { connect, createServer, type Socket } from "node:net";

export interface WireRules {
  /** Whether the client receives this message of the server. */
  passes?(message: Buffer): boolean;
  /** What the client receives in its place, in one piece. */
  replaces?(message: Buffer): Buffer;
  /** Whether this message of a client, with all that follows it, is held back. */
  holds?(message: Buffer): boolean;
}

export interface Wire {
  /** The server's URL, by this way. */
  readonly url: string;
  /** What was held back stays so, and nothing more is; connections that are made from now on wait. */
  shut(): void;
  /** New connections wait no longer. */
  open(): void;
  /** Nothing is held back any more, and what was goes on its way. */
  letGo(): void;
  /** Ends all connections: what was held back never arrives. Nothing is held back any more. */
  cut(): void;
  close(): Promise<void>;
}

const TYPE_BYTES = 1;

/** Cuts a stream into messages. A client's first one has no type in front of its length. */
class Messages {
  #pending = Buffer.alloc(0);
  #typeBytes: number;

  constructor(from: "client" | "server") {
    this.#typeBytes = from === "client" ? 0 : TYPE_BYTES;
  }

  take(data: Buffer): readonly Buffer[] {
    this.#pending = Buffer.concat([this.#pending, data]);
    const messages: Buffer[] = [];
    for (let length = this.#next(); length <= this.#pending.length; length = this.#next()) {
      messages.push(this.#pending.subarray(0, length));
      this.#pending = this.#pending.subarray(length);
      this.#typeBytes = TYPE_BYTES;
    }
    return messages;
  }

  #next(): number {
    const isKnown = this.#pending.length >= this.#typeBytes + 4;
    return isKnown ? this.#typeBytes + this.#pending.readInt32BE(this.#typeBytes) : Number.POSITIVE_INFINITY;
  }
}

export async function startWire(serverUrl: string, rules: WireRules): Promise<Wire> {
  const { passes = () => true, replaces = (message) => message } = rules;
  let holds = rules.holds ?? (() => false);
  const sockets = new Set<Socket>();
  const heldBack = new Map<Socket, Buffer[]>();
  let waiting: (() => void)[] | null = null;

  function join(client: Socket): void {
    const upstream = connect(Number(new URL(serverUrl).port), "127.0.0.1");
    const [said, sent] = [new Messages("server"), new Messages("client")];
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        for (const each of [client, upstream]) each.destroy();
        sockets.delete(socket);
        heldBack.delete(upstream);
      });
    }
    upstream.on("data", (data: Buffer) => {
      for (const message of said.take(data)) if (passes(message)) client.write(replaces(message));
    });
    client.on("data", (data: Buffer) => {
      for (const message of sent.take(data)) {
        if (!heldBack.has(upstream) && holds(message)) heldBack.set(upstream, []);
        const held = heldBack.get(upstream);
        if (held === undefined) upstream.write(message);
        else held.push(message);
      }
    });
  }

  const listener = createServer((client) => {
    sockets.add(client);
    client.on("error", () => undefined);
    if (waiting === null) join(client);
    else waiting.push(() => join(client));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  const url = new URL(serverUrl);
  url.port = String(typeof address === "object" ? address?.port : "");

  const noLonger = (): void => {
    holds = () => false;
  };
  const cut = (): void => {
    noLonger();
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    shut() {
      noLonger();
      waiting ??= [];
    },
    open() {
      const all = waiting ?? [];
      waiting = null;
      for (const each of all) each();
    },
    letGo() {
      noLonger();
      for (const [upstream, messages] of heldBack) for (const message of messages) upstream.write(message);
      heldBack.clear();
    },
    cut,
    close() {
      cut();
      return new Promise((resolve) => void listener.close(() => resolve()));
    },
  };
}
