/** A client of the stream for tests: numbers its messages, waits for their answers, collects events. */
import { onTestFinished } from "vitest";
import WebSocket from "ws";
import { type Body, until } from "./server.ts";

export class TestStream {
  readonly socket: WebSocket;
  readonly answers = new Map<number | string | null, Body>();
  readonly events: Body[] = [];
  readonly notices: string[] = [];
  /** How many messages brought the answers. */
  frames = 0;
  /** The most that one of them brought. */
  longestFrame = 0;
  closed: number | null = null;
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      this.frames += 1;
      const messages: readonly Body[] = JSON.parse(String(data));
      this.longestFrame = Math.max(this.longestFrame, messages.length);
      for (const message of messages) {
        if ("watch" in message) this.events.push({ watch: message.watch, ...message.event });
        else if ("notice" in message) this.notices.push(message.notice);
        else this.answers.set(message.id, message);
      }
    });
    socket.on("close", (code) => {
      this.closed = code;
    });
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<TestStream> {
    const socket = new WebSocket(`${url.replace("http", "ws")}/v1/stream`, { headers });
    const stream = new TestStream(socket);
    await new Promise((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    onTestFinished(() => socket.terminate());
    return stream;
  }

  /** Sends without waiting; returns the ids. */
  post(...operations: readonly object[]): readonly number[] {
    const messages = operations.map((operation) => {
      this.#lastId += 1;
      return { id: this.#lastId, ...operation };
    });
    this.socket.send(JSON.stringify(messages));
    return messages.map(({ id }) => id);
  }

  async answer(id: number | string | null | undefined): Promise<Body> {
    await until(`message ${id} is answered`, () => this.answers.has(id ?? null));
    return this.answers.get(id ?? null);
  }

  /** Sends all in one message and waits for every answer, in the order sent. */
  async ask(...operations: readonly object[]): Promise<readonly Body[]> {
    return await Promise.all(this.post(...operations).map((id) => this.answer(id)));
  }
}
