/**
 * A WebSocket between a client and a simulated server: two pipes, a handshake, and all the ways in which a
 * connection ends: closed by one side, broken and noticed, broken and noticed by one side only, or gone with
 * the process at the other end.
 */
import { EventEmitter } from "node:events";
import type { StreamSocket } from "solehold/internal";
import type { SimulatedEnv } from "../world/env.ts";
import type { ServerSocket } from "./gateway.ts";
import { Pipe } from "./pipe.ts";
import type { ServerAddress, Serving, Wire } from "./server-address.ts";

type Frame = { readonly kind: "open" | "opened" | "close" | "ping" | "pong" } | TextFrame;

interface TextFrame {
  readonly kind: "text";
  readonly text: string;
}

export interface StreamLinkOptions {
  readonly wire: Wire;
  readonly env: SimulatedEnv;
  readonly server: ServerAddress;
}

export function openStream(options: StreamLinkOptions): StreamSocket {
  return new StreamLink(options).client;
}

class StreamLink {
  readonly client: ClientEnd;
  readonly #options: StreamLinkOptions;
  readonly #up: Pipe<Frame>;
  readonly #down: Pipe<Frame>;
  #serving: Serving | null = null;
  #server: ServerEnd | null = null;

  constructor(options: StreamLinkOptions) {
    this.#options = options;
    const { wire, env, server } = options;
    const onBroken = (): void => this.#onBroken();
    const pipe = { wire, onBroken };
    this.#up = new Pipe({
      ...pipe,
      from: env.machine,
      to: server.machine,
      label: "stream up",
      deliver: (frame) => this.#atServer(frame),
    });
    this.#down = new Pipe({
      ...pipe,
      from: server.machine,
      to: env.machine,
      label: "stream down",
      deliver: (frame) => this.#atClient(frame),
    });
    this.client = new ClientEnd(
      (frame) => this.#up.send(frame),
      () => this.#reset("client"),
    );
    env.onKill(() => this.#reset("client"));
    this.#up.send({ kind: "open" });
  }

  #atServer(frame: Frame): void {
    if (frame.kind === "open") this.#accept();
    const { env } = this.#serving ?? {};
    const socket = this.#server;
    if (env === undefined || env.dead || socket === null || socket.isClosed) return;
    if (frame.kind === "text") socket.emit("message", Buffer.from(frame.text), false);
    else if (frame.kind === "pong") socket.emit("pong");
    else if (frame.kind === "close") {
      this.#down.send({ kind: "close" });
      this.#closeServer();
    }
  }

  #atClient(frame: Frame): void {
    const { client } = this;
    if (this.#options.env.dead || client.isClosed) return;
    if (frame.kind === "opened") client.emit("open");
    else if (frame.kind === "text") client.emit("message", frame.text);
    else if (frame.kind === "ping") this.#up.send({ kind: "pong" });
    else if (frame.kind === "close") {
      this.#up.send({ kind: "close" });
      client.end();
    }
  }

  #accept(): void {
    const serving = this.#options.server.serving();
    if (serving === null) {
      this.#reset("server");
      return;
    }
    this.#serving = serving;
    this.#server = new ServerEnd(
      (frame) => this.#down.send(frame),
      () => {
        this.#reset("server");
        this.#closeServer();
      },
    );
    serving.env.onKill(() => this.#reset("server"));
    serving.endpoint.accept(this.#server);
    this.#down.send({ kind: "opened" });
  }

  #closeServer(): void {
    const socket = this.#server;
    if (socket === null || socket.isClosed || this.#serving?.env.dead !== false) return;
    socket.end();
  }

  /** One side is gone at once; the other hears of it if the network lets it. */
  #reset(by: "client" | "server"): void {
    const { wire, env, server } = this.#options;
    if (by === "client") {
      wire.network.send(env.machine, server.machine, "reset", () => this.#closeServer());
      return;
    }
    wire.network.send(server.machine, env.machine, "reset", () => {
      if (!env.dead) this.client.end();
    });
  }

  /** Nothing passes any more. Each side notices by itself, or never. */
  #onBroken(): void {
    const { wire, env, server } = this.#options;
    const { world, noticeMs } = wire;
    const random = world.choices.stream("broken streams");
    const notice = (machine: typeof env.machine, end: () => void): void => {
      const inMs = random.fraction() * noticeMs * 4;
      if (random.chance(0.7)) world.schedule(world.nowMs + inMs, machine, "stream broke", end);
    };
    notice(env.machine, () => {
      if (!env.dead) this.client.end();
    });
    notice(server.machine, () => this.#closeServer());
  }
}

class End extends EventEmitter {
  readonly sendFrame: (frame: Frame) => void;
  readonly #reset: () => void;
  isClosed = false;

  constructor(sendFrame: (frame: Frame) => void, reset: () => void) {
    super();
    this.sendFrame = sendFrame;
    this.#reset = reset;
  }

  /** A closed socket says so once. */
  end(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.emit("close");
  }

  close(): void {
    if (!this.isClosed) this.sendFrame({ kind: "close" });
  }

  terminate(): void {
    if (this.isClosed) return;
    this.#reset();
    this.end();
  }
}

class ClientEnd extends End implements StreamSocket {
  send(text: string): void {
    if (!this.isClosed) this.sendFrame({ kind: "text", text });
  }
}

class ServerEnd extends End implements ServerSocket {
  readonly bufferedAmount = 0;

  send(text: string, done?: () => void): void {
    if (!this.isClosed) this.sendFrame({ kind: "text", text });
    done?.();
  }

  ping(): void {
    if (!this.isClosed) this.sendFrame({ kind: "ping" });
  }

  pause(): void {
    // What a client has under way is far below the server's limits here.
  }

  resume(): void {
    // See pause.
  }
}
