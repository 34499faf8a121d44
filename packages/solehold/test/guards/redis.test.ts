import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisGuard } from "../../src/guards/index.ts";
import { type Engine, startRedis } from "../engines/index.ts";
import { ATTEMPTS, newTerm, successor, zombie } from "./zombie.ts";

let server: Engine;
let client: Redis;

beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.url);
});

afterAll(async () => {
  client?.disconnect();
  await server?.stop();
});

beforeEach(() => client.flushall());

const write = (by: typeof zombie, text: string) =>
  new RedisGuard(client).run(by, {
    commands: [
      ["SET", "report", text],
      ["RPUSH", "history", text],
    ],
    keys: ["report", "history"],
  });

describe("commands with a fence", () => {
  it("are refused every time once a newer fence was seen, and change nothing", async () => {
    expect(await write(zombie, "first")).toEqual(["OK", 1]);
    expect(await write(successor, "second")).toEqual(["OK", 2]);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      await expect(write(zombie, "zombie")).rejects.toMatchObject({
        code: "STALE_FENCE",
        newestFence: successor.fence,
      });
    }
    await write(newTerm, "third");
    await expect(write(successor, "zombie")).rejects.toMatchObject({ code: "STALE_FENCE" });
    expect(await client.get("report")).toBe("third");
    expect(await client.lrange("history", 0, -1)).toEqual(["first", "second", "third"]);
  });

  it("of a zombie are refused after its successor's raise, before the successor's first write", async () => {
    await write(zombie, "first");
    const guard = new RedisGuard(client);
    await guard.raise(successor);
    await expect(write(zombie, "zombie")).rejects.toMatchObject({ newestFence: successor.fence });
    await expect(guard.raise(zombie)).rejects.toMatchObject({ newestFence: successor.fence });
    expect(await client.get("report")).toBe("first");
  });

  it("of one holder may follow each other", async () => {
    await write(successor, "one");
    await write(successor, "two");
    expect(await client.get("report")).toBe("two");
  });
});
