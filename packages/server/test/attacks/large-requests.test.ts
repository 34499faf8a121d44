/** One large request: it is refused before it costs anything, or begins in portions with others between. */
import { describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

const DEEP = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;

describe("a body that is nested deeply", () => {
  it("is refused before it is parsed, over HTTP and the stream", async () => {
    const server = await testServer();
    const answer = await server.post("/v1/leases/acquire", DEEP);
    expect(answer.status).toBe(400);
    expect(answer.body.detail).toBe("body must not be nested deeper than 16 levels");
    const stream = await TestStream.open(server.url);
    const refused = new Promise<string>((resolve) => {
      stream.socket.once("message", (data) => resolve(String(data)));
    });
    stream.socket.send(DEEP);
    expect(await refused).toContain("nested no deeper than 16 levels");
  });

  it("is not mistaken for one whose texts have brackets", async () => {
    const { post } = await testServer();
    const note = `\\"${"[".repeat(20_000)}`;
    const { status, body } = await post("/v1/leases/acquire", { name: "job", holder: "h", note });
    expect({ status, field: body.field }).toEqual({ status: 400, field: "note" });
  });
});

describe("a body that is longer than a command", () => {
  it("is refused, except for renewals of many", async () => {
    const { post } = await testServer();
    const long = { name: "job", holder: "h", note: "n".repeat(300_000) };
    expect((await post("/v1/leases/acquire", long)).status).toBe(413);
    expect((await post("/v1/leases/renew", { leases: [long, long] })).status).toBe(200);
  });
});

describe("more renewals in one request than the server was started for", () => {
  it("are refused as a whole", async () => {
    const { post } = await testServer({ batchLimit: "5" });
    const renewal = { name: "job", holder: "h", token: "t" };
    const many = await post("/v1/leases/renew", { leases: Array(6).fill(renewal) });
    expect([many.status, many.body.field]).toEqual([400, "leases"]);
    expect((await post("/v1/leases/renew", { leases: Array(5).fill(renewal) })).body.results).toHaveLength(5);
  });
});

describe("thousands of commands in one request", () => {
  /** How many began together, at most. */
  function countBegun({ server: { queue } }: TestServer) {
    const counts = { begun: 0, mostInOneTurn: 0 };
    let inThisTurn = 0;
    const execute = queue.execute.bind(queue);
    Object.assign(queue, {
      execute: (...request: Parameters<typeof execute>) => {
        counts.begun += 1;
        if (inThisTurn === 0)
          setImmediate(() => {
            inThisTurn = 0;
          });
        inThisTurn += 1;
        counts.mostInOneTurn = Math.max(counts.mostInOneTurn, inThisTurn);
        return execute(...request);
      },
    });
    return counts;
  }
  const renewals = Array.from({ length: 3_000 }, (_, index) => ({
    name: `n/${index}`,
    holder: "h",
    token: "t",
  }));

  it("begin in portions, with turns of the event loop between, and each is answered", async () => {
    const server = await testServer();
    const counts = countBegun(server);
    const { body } = await server.post("/v1/leases/renew", { leases: renewals });
    expect(body.results).toHaveLength(3_000);
    expect(counts.begun).toBe(3_000);
    // A timer may fire twice in a turn.
    expect(counts.mostInOneTurn).toBeLessThanOrEqual(3 * 256);
  });

  it("do so over the stream as well", async () => {
    const server = await testServer();
    const counts = countBegun(server);
    const stream = await TestStream.open(server.url);
    const answers = await stream.ask(...renewals.map((renewal) => ({ op: "renew", ...renewal })));
    expect(answers).toHaveLength(3_000);
    expect(counts.begun).toBe(3_000);
    expect(counts.mostInOneTurn).toBeLessThanOrEqual(3 * 256);
  });
});
