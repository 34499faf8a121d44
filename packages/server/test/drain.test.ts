import { describe, expect, it } from "vitest";
import { testServer, until } from "./support/server.ts";
import { TestStream } from "./support/stream.ts";

const owner = { name: "a", holder: "me", token: "t" };

describe("a server that shuts down", () => {
  it("sends waiters elsewhere with 503, over HTTP and the stream, and ends watches and streams", async () => {
    const { url, server, lease } = await testServer();
    await lease("acquire", owner);
    const stream = await TestStream.open(url);
    const waiting = lease("acquire", { name: "a", holder: "b", waitMs: 60_000 });
    const [inStream] = stream.post({ op: "acquire", name: "a", holder: "c", waitMs: 60_000 });
    const watching = (await fetch(`${url}/v1/watch`)).text();
    await until("both wait", () => server.queue.size === 2);
    const closed = server.close();
    const answer = await waiting;
    expect([answer.status, answer.body.reason, answer.body.outcome]).toEqual([
      503,
      "DRAINING",
      "not-applied",
    ]);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(answer.headers.get("connection")).toBe("close");
    expect((await stream.answer(inStream)).body).toMatchObject({ status: 503, reason: "DRAINING" });
    expect(await watching).toContain("event: watching");
    await closed;
    expect(stream.notices).toEqual(["draining"]);
    await until("the stream was closed", () => stream.closed !== null);
    expect(stream.closed).toBe(1012);
    await expect(fetch(url)).rejects.toThrow();
  });

  it("answers what is under way, takes nothing more, and closing twice is one closing", async () => {
    const { url, server, get } = await testServer();
    const stream = await TestStream.open(url);
    const asked = stream.post(
      ...Array.from({ length: 2_000 }, (_, index) => ({ op: "acquire", ...owner, name: `n/${index}` })),
    );
    await until("some are decided", async () => (await server.service.activeCount("default")) > 0);
    const closings = [server.close(), server.close()];
    const [late] = stream.post({ op: "ping" });
    for (const id of asked) expect((await stream.answer(id)).status).toBe(200);
    await Promise.all(closings);
    await until("the stream was closed", () => stream.closed !== null);
    expect(stream.closed).toBe(1012);
    const lateStatus = stream.answers.get(late ?? 0)?.status;
    expect([undefined, 503]).toContain(lateStatus);
    await expect(get("/healthz")).rejects.toThrow();
  });

  it("keeps in files what it granted, and proves it after a restart", async () => {
    const first = await testServer({ audit: "before-reply" });
    await first.lease("acquire", owner);
    await first.server.close();
    const second = await testServer({ audit: "before-reply" }, { dataDir: first.dataDir });
    // Start, grant, stop, start.
    expect((await second.get("/v1/audit/verify")).body).toMatchObject({ ok: true, entries: 4 });
    await second.lease("acquire", owner);
    expect((await second.get("/v1/audit/verify")).body).toMatchObject({ ok: true, entries: 5 });
  });
});
