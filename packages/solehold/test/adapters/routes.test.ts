/** Fences and leases in HTTP services: Express, Hono and Next.js themselves, and routes of plain Request and Response. */
import { once } from "node:events";
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { fenceGuard as expressGuard } from "../../src/adapters/express.ts";
import { fenceGuard as honoGuard } from "../../src/adapters/hono.ts";
import { fencedRoute, leasedRoute } from "../../src/adapters/web.ts";
import { type Fenced, FenceGate, fenceHeaders } from "../../src/guards/index.ts";
import { clientWorld, freeze } from "../client/helpers.ts";
import { successor, zombie } from "../guards/zombie.ts";
import { latch } from "./latch.ts";
import { nextRoute } from "./next-route.ts";
import { Hono } from "./packages/hono.ts";

const keyOf = () => zombie.key;

interface Service {
  /** What its handler wrote. */
  readonly written: string[];
  put(by: Fenced | null, text: string): Promise<Response>;
  close?(): unknown;
}

/** `inside` runs in the handler, before its write. */
type Start = (inside: (text: string) => Promise<void>) => Promise<Service>;

const headersOf = (by: Fenced | null, text: string) => ({ ...(by === null ? {} : fenceHeaders(by)), text });
const request = (by: Fenced | null, text: string) =>
  new Request("http://service/report", { method: "PUT", headers: headersOf(by, text) });

/** As far as it is used: the package has no types. */
type ExpressHandler = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;
interface ExpressApp extends RequestListener {
  put(path: string, ...handlers: ExpressHandler[]): void;
  listen(port: number, host: string): Server;
}
const express: () => ExpressApp = createRequire(import.meta.url)("./packages/node_modules/express");

function webRoute(inside: (text: string) => Promise<void>) {
  const written: string[] = [];
  const route = fencedRoute({ keyOf }, async ({ headers }) => {
    await inside(headers.get("text") ?? "");
    written.push(headers.get("text") ?? "");
    return new Response("written");
  });
  return { written, route };
}

const SERVICES: { readonly [name: string]: Start } = {
  Express: async (inside) => {
    const written: string[] = [];
    const app = express();
    app.put("/report", expressGuard({ keyOf }), async ({ headers }, response) => {
      await inside(String(headers.text));
      written.push(String(headers.text));
      response.end("written");
    });
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/report`;
    const put = (by: Fenced | null, text: string) =>
      fetch(url, { method: "PUT", headers: headersOf(by, text) });
    return { written, put, close: () => server.closeAllConnections() ?? server.close() };
  },
  Hono: async (inside) => {
    const written: string[] = [];
    const app = new Hono().onError((_error, context) => context.text("failed", 500));
    app.put("/report", honoGuard({ keyOf }), async (context) => {
      await inside(context.req.header("text") ?? "");
      written.push(context.req.header("text") ?? "");
      return context.text("written");
    });
    return { written, put: async (by, text) => await app.request(request(by, text)) };
  },
  "Next.js": async (inside) => {
    const { written, route } = webRoute(inside);
    const serve = await nextRoute("/report", { PUT: route });
    return { written, put: (by, text) => serve(request(by, text)) };
  },
  "Request and Response": async (inside) => {
    const { written, route } = webRoute(inside);
    return { written, put: (by, text) => route(request(by, text)) };
  },
};

describe.each(Object.entries(SERVICES))("the fence guard with %s", (_, start) => {
  let close: () => unknown = () => undefined;
  afterEach(() => close());
  const started: Start = async (inside) => {
    const service = await start(inside);
    close = () => service.close?.();
    return service;
  };

  it("refuses an older fence, a missing and a malformed one, and says why", async () => {
    const { put, written } = await started(async () => undefined);
    expect((await put(zombie, "first")).status).toBe(200);
    expect((await put(successor, "second")).status).toBe(200);
    const late = await put(zombie, "zombie");
    expect([late.status, await late.json()]).toMatchObject([412, { code: "STALE_FENCE" }]);
    const missing = await put(null, "nobody");
    expect([missing.status, await missing.json()]).toMatchObject([428, { code: "FENCE_MISSING" }]);
    expect(written).toEqual(["first", "second"]);
  });

  it("lets a newer request begin when the older one has ended, also by an error", async () => {
    const steps: string[] = [];
    const [inside, finish] = [latch(), latch()];
    const { put } = await started(async (text) => {
      steps.push(`begin ${text}`);
      if (text === "second") return;
      inside.open();
      await finish.opened;
      steps.push(`end ${text}`);
      throw new Error("the handler failed");
    });
    const older = put(zombie, "first").then(
      ({ status }) => status,
      () => 500,
    );
    await inside.opened;
    const newer = put(successor, "second");
    await new Promise((resolve) => setImmediate(resolve));
    finish.open();
    expect([await older, (await newer).status]).toEqual([500, 200]);
    expect(steps).toEqual(["begin first", "end first", "begin second"]);
  });
});

it("a guard without keyOf is refused when it is set up", () => {
  expect(() => expressGuard({} as never)).toThrow(/keyOf must be/);
  expect(() => honoGuard({} as never)).toThrow(/keyOf must be/);
  expect(() => fencedRoute({ gate: new FenceGate() } as never, () => new Response())).toThrow(
    /keyOf must be/,
  );
});

describe("a route under a lease", () => {
  const post = (init: RequestInit = {}) => new Request("http://service/report", { method: "POST", ...init });

  it("runs for one caller at a time, and tells the other who has it and when to come back", async () => {
    const { leases } = clientWorld();
    const [inside, finish] = [latch(), latch()];
    const route = leasedRoute(leases, { name: "report", wait: 0 }, async (_request, { lease }) => {
      inside.open();
      await finish.opened;
      return Response.json({ fence: String(lease.fence) });
    });
    const first = route(post());
    await inside.opened;
    const second = await route(post());
    expect([second.status, second.headers.get("retry-after")]).toEqual([409, "30"]);
    expect(await second.json()).toMatchObject({
      code: "LEASE_HELD",
      message: expect.stringContaining("held by me"),
    });
    finish.open();
    expect(await (await first).json()).toEqual({ fence: "1" });
    expect((await route(post())).status).toBe(200);
  });

  it("answers 503 after a lost lease, and the signal has aborted", async () => {
    const { env, leases, store } = clientWorld();
    const inside = latch();
    let reason: unknown;
    const route = leasedRoute(leases, { name: "report", ttl: "30s" }, async (_request, { signal }) => {
      freeze(store);
      inside.open();
      await once(signal, "abort");
      reason = signal.reason;
      return new Response("as if nothing had happened");
    });
    const answering = route(post());
    await inside.opened;
    await env.advance(60_000);
    const answer = await answering;
    expect(reason).toMatchObject({ code: "LEASE_LOST" });
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: "LEASE_LOST" }]);
  });

  it("aborts when the client is gone, and leaves what the handler throws to the framework", async () => {
    const { leases } = clientWorld();
    const client = new AbortController();
    const aborted: boolean[] = [];
    const route = leasedRoute(leases, { name: "report" }, async (_request, { signal }) => {
      aborted.push(signal.aborted);
      client.abort();
      aborted.push(signal.aborted);
      throw new Error("the handler's own");
    });
    const answer = route(post({ signal: client.signal })).catch((error: unknown) => error);
    expect(await answer).toMatchObject({ message: "the handler's own" });
    expect(aborted).toEqual([false, true]);
    expect((await leases.tryAcquire("report")).ok).toBe(true);
  });

  it("is served by Hono and by Next.js, with what else a route gets", async () => {
    const { leases } = clientWorld();
    const name = ({ url }: Request) => new URL(url).pathname.slice(1);
    const route = leasedRoute(
      leases,
      { name },
      async (_request, { lease }, { params }: { params: Promise<{ id: string }> }) =>
        Response.json({ name: lease.name, id: (await params).id }),
    );
    const app = new Hono();
    app.post("/reports/:id", (context) =>
      route(context.req.raw, { params: Promise.resolve(context.req.param()) }),
    );
    const next = await nextRoute("/reports/[id]", { POST: route });
    const asked = () => new Request("http://service/reports/7", { method: "POST" });
    for (const answer of [await app.request(asked()), await next(asked(), { id: "7" })])
      expect(await answer.json()).toEqual({ name: "reports/7", id: "7" });
  });

  it("aborts in Next.js when the client is gone, and answers 409 meanwhile", async () => {
    const { leases } = clientWorld();
    const client = new AbortController();
    const [inside, gone] = [latch(), latch()];
    const route = leasedRoute(leases, { name: "report", wait: 0 }, async (_request, { signal }) => {
      signal.addEventListener("abort", gone.open);
      inside.open();
      await gone.opened;
      return new Response("for nobody");
    });
    const next = await nextRoute("/report", { POST: route });
    const first = next(post({ signal: client.signal }));
    await inside.opened;
    const second = await next(post());
    expect([second.status, second.headers.get("retry-after")]).toEqual([409, "30"]);
    client.abort();
    expect((await first).status).toBe(200);
    expect((await leases.tryAcquire("report")).ok).toBe(true);
  });

  it("refuses wrong input when it is set up", () => {
    const { leases } = clientWorld();
    expect(() => leasedRoute(leases, { name: "" }, () => new Response())).toThrow(/name must be/);
    expect(() => leasedRoute({} as never, { name: "report" }, () => new Response())).toThrow(/await connect/);
  });
});
