import { EventEmitter, once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import fastify, { type FastifyRequest } from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { fenceGuard } from "../../src/adapters/express.ts";
import { fenceGuard as fastifyFenceGuard } from "../../src/adapters/fastify.ts";
import { FenceGate, fenceHeaders } from "../../src/guards/index.ts";
import { ATTEMPTS, newTerm, successor, zombie } from "./zombie.ts";

const keyOf = () => zombie.key;
let close: () => Promise<unknown> = async () => undefined;
/** Emits "guarded" after the guard was given a request. */
const arrivals = new EventEmitter();

afterEach(() => close());

/** As express runs it: the guard, then the handler. */
async function plainServer(
  handler: (body: string, response: ServerResponse) => Promise<void>,
): Promise<string> {
  const guard = fenceGuard({ keyOf });
  const server = createServer((request: IncomingMessage, response) => {
    guard(request, response, () => void handler(request.headers["x-text"] as string, response));
    arrivals.emit("guarded");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const put = (url: string, by: Pick<typeof zombie, "fence">, text: string) =>
  fetch(url, { method: "PUT", headers: { ...fenceHeaders(by), "x-text": text } });

describe.each(["express", "fastify"] as const)("the guard of an HTTP service with %s", (kind) => {
  const written: string[] = [];
  const start = async (): Promise<string> => {
    written.length = 0;
    if (kind === "express")
      return await plainServer(async (text, response) => {
        written.push(text);
        response.end("ok");
      });
    const app = fastify();
    app.put("/", { preHandler: fastifyFenceGuard<FastifyRequest>({ keyOf }) }, async (request) => {
      written.push(String(request.headers["x-text"]));
      return "ok";
    });
    close = () => app.close();
    return await app.listen({ port: 0, host: "127.0.0.1" });
  };

  it("refuses a zombie every time, and lets its successors in", async () => {
    const url = await start();
    expect((await put(url, zombie, "first")).status).toBe(200);
    expect((await put(url, successor, "second")).status).toBe(200);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const reply = await put(url, zombie, "zombie");
      expect(reply.status).toBe(412);
      expect(await reply.json()).toMatchObject({
        code: "STALE_FENCE",
        newest: fenceHeaders(successor)["solehold-fence"],
      });
    }
    expect((await put(url, newTerm, "third")).status).toBe(200);
    expect((await put(url, successor, "zombie")).status).toBe(412);
    expect(written).toEqual(["first", "second", "third"]);
  });

  it("asks for a fence that is missing and names one that is wrong", async () => {
    const url = await start();
    const missing = await fetch(url, { method: "PUT" });
    expect([missing.status, await missing.json()]).toMatchObject([428, { code: "FENCE_MISSING" }]);
    const wrong = await fetch(url, { method: "PUT", headers: { "solehold-fence": "-1" } });
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { code: "FENCE_INVALID" }]);
    expect(written).toEqual([]);
  });
});

it("a route that only ends its response raises the fence of the routes that share its gate", async () => {
  const gate = new FenceGate();
  const guard = { preHandler: fastifyFenceGuard<FastifyRequest>({ keyOf, gate }) };
  const app = fastify();
  app.put("/report", guard, async () => "written");
  app.post("/report/fence", guard, async (_request, reply) => reply.code(204).send());
  close = () => app.close();
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  const raise = (by: typeof zombie) =>
    fetch(`${url}/report/fence`, { method: "POST", headers: fenceHeaders(by) });
  expect((await put(`${url}/report`, zombie, "first")).status).toBe(200);
  expect((await raise(successor)).status).toBe(204);
  expect((await put(`${url}/report`, zombie, "zombie")).status).toBe(412);
  expect((await raise(zombie)).status).toBe(412);
});

describe("a slow handler", () => {
  it("has ended before a newer request begins, even if its client went away", async () => {
    const steps: string[] = [];
    let finish: () => void = () => undefined;
    let begun: () => void = () => undefined;
    const zombieInside = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const slow = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let clientGone: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => {
      clientGone = resolve;
    });
    const url = await plainServer(async (text, response) => {
      steps.push(`begin ${text}`);
      if (text === "zombie") {
        response.once("close", clientGone);
        begun();
        await slow;
      }
      steps.push(`write ${text}`);
      response.end("ok");
    });
    const aborted = httpRequest(url, {
      method: "PUT",
      headers: { ...fenceHeaders(zombie), "x-text": "zombie" },
    });
    aborted.on("error", () => undefined);
    aborted.end();
    await zombieInside;
    aborted.destroy();
    await gone;
    const arrived = once(arrivals, "guarded");
    const newer = put(url, successor, "successor");
    await arrived;
    // Were the gate open, the handler would begin within this turn.
    await new Promise((resolve) => setImmediate(resolve));
    finish();
    expect((await newer).status).toBe(200);
    expect(steps).toEqual(["begin zombie", "write zombie", "begin successor", "write successor"]);
  });
});

describe("a gate", () => {
  it("turns away an older fence that waited while a newer one passed", async () => {
    const gate = new FenceGate();
    const leave = await gate.enter(zombie);
    const newer = gate.enter(successor);
    const older = gate.enter(zombie);
    leave();
    (await newer)();
    await expect(older).rejects.toMatchObject({ code: "STALE_FENCE" });
    await gate.run(successor, async () => undefined);
  });

  it("with a memory knows the newest fence after a restart", async () => {
    const kept = new Map<string, bigint>();
    const memory = {
      load: async () => kept.get("it") ?? 0n,
      save: async (_key: unknown, fence: bigint) => void kept.set("it", fence),
    };
    await new FenceGate({ memory }).run(successor, async () => undefined);
    await expect(new FenceGate({ memory }).enter(zombie)).rejects.toMatchObject({ code: "STALE_FENCE" });
  });
});
