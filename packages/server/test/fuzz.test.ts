// SOLEHOLD_FUZZ_REQUESTS and SOLEHOLD_FUZZ_SEED make it longer and different: npm run fuzz -w packages/server
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { Dice, type HostileRequest, HostileRequests } from "./support/hostile.ts";
import { type Body, tempFolder, testServer, until } from "./support/server.ts";
import { TestStream } from "./support/stream.ts";

const REQUESTS = Number(process.env.SOLEHOLD_FUZZ_REQUESTS ?? 5_000);
const SEED = Number(process.env.SOLEHOLD_FUZZ_SEED ?? 1);
const IN_FLIGHT = 16;
const TIMEOUT_MS = 240_000 + REQUESTS * 20;
/** Refusals whose cause is the request itself must say which part of it. */
const NAMES_A_FIELD = new Set([400, 404, 405, 413, 415]);
const MAX_GROWTH_BYTES = 25 * 1024 * 1024;

interface Reply {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

function send(url: string, agent: Agent, { method, path, headers, body }: HostileRequest): Promise<Reply> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const call = httpRequest(
      { hostname, port, method, path, headers, agent },
      (response: IncomingMessage) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => {
          resolve({
            status: response.statusCode ?? 0,
            contentType: response.headers["content-type"] ?? "",
            text,
          });
        });
      },
    );
    call.on("error", reject);
    call.end(body ?? undefined);
  });
}

function problemWith({ method }: HostileRequest, { status, contentType, text }: Reply): string | null {
  if (status >= 500) return `status ${status}`;
  if (status < 400 || method === "HEAD") return null;
  if (!contentType.startsWith("application/problem+json")) return `content-type ${contentType}`;
  const body: Body = JSON.parse(text);
  if (body.status !== status || typeof body.detail !== "string") return "not a problem document";
  const isAbsence = status === 404 && body.reason === "LEASE_NOT_FOUND";
  if (NAMES_A_FIELD.has(status) && !isAbsence && typeof body.field !== "string") return "names no field";
  return null;
}

function shortened({ method, path, headers, body }: HostileRequest): object {
  return { method, path: path.slice(0, 300), headers, body: body?.slice(0, 300) };
}

async function heapAfterCollection(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  await new Promise((resolve) => setTimeout(resolve, 100));
  collect();
  return process.memoryUsage().heapUsed;
}

describe("hostile requests", () => {
  it(`end in no 5xx, each refusal names its field, and memory does not grow: ${REQUESTS} over HTTP`, {
    timeout: TIMEOUT_MS,
  }, async () => {
    const dataDir = await tempFolder();
    const store = `embedded:${dataDir}/data`;
    const server = await testServer({ bodyLimitBytes: "65536", logLevel: "silent", store }, { dataDir });
    const { body: document } = await server.get("/openapi.json");
    const requests = new HostileRequests(document, new Dice(SEED));
    const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
    const statuses = new Map<number, number>();
    const failures: object[] = [];
    let sent = 0;
    const worker = async (count: number): Promise<void> => {
      while (sent < count && failures.length < 5) {
        sent += 1;
        const request = requests.next();
        server.logged.length = 0;
        const reply = await send(server.url, agent, request);
        statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
        const problem = problemWith(request, reply);
        if (problem !== null)
          failures.push({ problem, ...shortened(request), reply: reply.text.slice(0, 500) });
      }
    };
    const round = async (count: number): Promise<number> => {
      await Promise.all(Array.from({ length: IN_FLIGHT }, () => worker(count)));
      return await heapAfterCollection();
    };
    const before = await round(Math.floor(REQUESTS / 2));
    const after = await round(REQUESTS);
    agent.destroy();
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThanOrEqual(REQUESTS);
    for (const status of [200, 400, 404, 405, 409, 415]) expect(statuses.get(status) ?? 0).toBeGreaterThan(0);
    expect(after - before).toBeLessThan(MAX_GROWTH_BYTES);
    expect((await server.get("/readyz")).status).toBe(200);
  });

  it("over the stream are all answered, and the connection lives", { timeout: TIMEOUT_MS }, async () => {
    const server = await testServer({ logLevel: "silent" });
    const { body: document } = await server.get("/openapi.json");
    const requests = new HostileRequests(document, new Dice(SEED + 1));
    const stream = await TestStream.open(server.url);
    const asked = new Map<number, object>();
    for (let round = 0; round < REQUESTS / 100; round += 1) {
      const messages = Array.from({ length: 20 }, () => {
        const { op, body } = requests.body();
        const fields = typeof body === "object" && body !== null && !Array.isArray(body) ? body : { body };
        return { ...fields, op };
      });
      for (const [index, id] of stream.post(...messages).entries()) asked.set(id, messages[index] as object);
    }
    await until("all are answered", () => [...asked.keys()].every((id) => stream.answers.has(id)));
    const bad = [...asked].filter(([id]) => {
      const { status, body } = stream.answers.get(id);
      return status >= 500 || (status === 400 && typeof body.field !== "string");
    });
    expect(bad).toEqual([]);
    expect((await stream.ask({ op: "ping" }))[0]?.status).toBe(200);
  });

  it("that are not even HTTP do no harm", async () => {
    const server = await testServer({ logLevel: "silent" });
    const dice = new Dice(SEED + 2);
    const port = Number(new URL(server.url).port);
    const heads = [
      "GET / HTTP/1.1\r\n",
      "POST /v1/leases/acquire HTTP/1.1\r\nhost: localhost\r\n",
      "GET /v1/stream HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n",
      "\x16\x03\x01",
      "",
    ];
    const junk = (): Buffer => Buffer.from(Array.from({ length: dice.below(300) }, () => dice.below(256)));
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => {
        const bytes = Buffer.concat([
          Buffer.from(dice.pick(heads), "latin1"),
          junk(),
          Buffer.from("\r\n\r\n"),
        ]);
        return new Promise<string>((resolve) => {
          const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
          let text = "";
          socket.setEncoding("latin1").on("data", (chunk: string) => {
            text += chunk;
          });
          socket.on("close", () => resolve(text));
          socket.on("error", () => resolve(text));
        });
      }),
    );
    expect(answers.filter((text) => /^HTTP\/1\.1 5/.test(text))).toEqual([]);
    expect(answers.filter((text) => text.startsWith("HTTP/1.1 4")).length).toBeGreaterThan(20);
    expect((await server.get("/readyz")).status).toBe(200);
  });
});
