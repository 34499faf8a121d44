import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError, readConfigFile, resolveConfig, SETTING_NAMES, startServer } from "@solehold/server";
import { describe, expect, it } from "vitest";
import { tempFolder, testServer } from "./support/server.ts";

const file = (content: object): { path: string; content: object } => ({ path: "solehold.json", content });

describe("settings", () => {
  it("come from the flag, else the environment, else the file, else the default", () => {
    const env = { SOLEHOLD_PORT: "2", SOLEHOLD_HOST: "127.0.0.2" };
    const content = { port: 3, host: "127.0.0.3", logLevel: "warn" };
    const config = resolveConfig({ flags: { port: "1" }, env, file: file(content) });
    expect([config.port, config.host, config.logLevel, config.drainMs]).toEqual([
      1,
      "127.0.0.2",
      "warn",
      10_000,
    ]);
  });

  it("have defaults that all can be started with", async () => {
    const config = resolveConfig();
    expect(config.store).toBe("embedded:./.solehold/data");
    expect(resolveConfig({ flags: { dataDir: "/data" } }).store).toBe("embedded:/data/data");
    expect(config).toMatchObject({ host: "127.0.0.1", port: 7077, audit: "before-reply", behindProxy: "no" });
    for (const name of SETTING_NAMES) expect(config[name]).toBeDefined();
  });

  it.each([
    [{ flags: { port: "65536" } }, "--port must be a whole number from 0 to 65535"],
    [{ env: { SOLEHOLD_PORT: "1.5" } }, "SOLEHOLD_PORT must be a whole number"],
    [{ file: file({ waitLimitMs: "soon" }) }, "waitLimitMs in solehold.json must be a whole number"],
    [{ file: file({ colour: "red" }) }, "unknown setting 'colour'"],
    [{ file: file([]) }, "must hold a JSON object"],
    [{ flags: { audit: "never" } }, "--audit must be one of before-reply, background, memory"],
    [{ flags: { logLevel: "loud" } }, "--log-level must be one of"],
    [{ env: { SOLEHOLD_BEHIND_PROXY: "perhaps" } }, "SOLEHOLD_BEHIND_PROXY must be yes or no"],
    [{ flags: { host: "" } }, "--host must be a text that is not empty"],
  ])("that are wrong are named, with where they came from: %j", (sources, message) => {
    expect(() => resolveConfig(sources)).toThrow(ConfigError);
    expect(() => resolveConfig(sources)).toThrow(message);
  });

  it("in a file that cannot be read are an error, not a default", async () => {
    const path = join(await tempFolder(), "config.json");
    await expect(readConfigFile(path)).rejects.toThrow(/cannot be read/);
    await writeFile(path, "{ nope");
    await expect(readConfigFile(path)).rejects.toThrow(/is not JSON/);
    await writeFile(path, '{"port": 0}');
    expect(resolveConfig({ file: await readConfigFile(path) }).port).toBe(0);
  });

  it("that contradict each other or the machine refuse to start", async () => {
    const dataDir = await tempFolder();
    const base = { port: "0", store: "memory:", audit: "memory", dataDir, logLevel: "silent" };
    const start = (flags: Record<string, string>): Promise<unknown> =>
      startServer(resolveConfig({ flags: { ...base, ...flags } }));
    await expect(start({ minTtlMs: "10", maxTtlMs: "5" })).rejects.toThrow(ConfigError);
    await expect(start({ quorumFile: "/nowhere.json" })).rejects.toThrow(/quorum file/);
    await expect(start({ host: "127.0.0.300" })).rejects.toThrow();
    const { url } = await testServer();
    await expect(start({ port: new URL(url).port })).rejects.toThrow(/in use.*choose another/);
    await expect(start({ store: "nosuch:store" })).rejects.toThrow(/unknown scheme/);
  });

  it("bound the ttl", async () => {
    const { lease } = await testServer({ minTtlMs: "1000", maxTtlMs: "5000", defaultTtlMs: "2000" });
    const answer = async (ttlMs?: number): Promise<unknown> => {
      const { status, body } = await lease("acquire", {
        name: `n${ttlMs}`,
        holder: "h",
        ...(ttlMs === undefined ? {} : { ttlMs }),
      });
      return status === 200 ? body.validForMs : body.field;
    };
    expect([
      await answer(999),
      await answer(1_000),
      await answer(5_000),
      await answer(5_001),
      await answer(),
    ]).toEqual(["ttlMs", 1_000, 5_000, "ttlMs", 2_000]);
  });
});
