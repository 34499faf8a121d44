/** An HTTP server that answers as a test says, and remembers what it was asked. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Asked {
  readonly action: string;
  readonly body: Record<string, unknown>;
  readonly headers: IncomingHttpHeaders;
}

export interface Answer {
  readonly status?: number;
  /** Text is sent as it is. */
  readonly body?: object | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The connection is cut instead. */
  readonly cut?: boolean;
}

export const TABLE = {
  TableStatus: "ACTIVE",
  KeySchema: [
    { AttributeName: "tenant", KeyType: "HASH" },
    { AttributeName: "name", KeyType: "RANGE" },
  ],
  AttributeDefinitions: [
    { AttributeName: "name", AttributeType: "S" },
    { AttributeName: "tenant", AttributeType: "S" },
  ],
};

export class ScriptedServer {
  readonly asked: Asked[] = [];
  /** Null: as DynamoDB would say of a table without items. */
  answer: (asked: Asked) => Answer | null = () => null;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const action = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
      const asked = { action, body: JSON.parse(Buffer.concat(chunks).toString()), headers: request.headers };
      this.asked.push(asked);
      const normal: Answer = { body: action === "DescribeTable" ? { Table: TABLE } : {} };
      const { status = 200, body = {}, headers = {}, cut = false } = this.answer(asked) ?? normal;
      if (cut) return void request.socket.destroy();
      response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
    });
  }

  static async start(): Promise<ScriptedServer> {
    const server = new ScriptedServer();
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export function problem(type: string, message = "said so", status = 400): Answer {
  return { status, body: { __type: `com.amazonaws.dynamodb.v20120810#${type}`, message } };
}
