/** Where a server may listen without keys and without TLS, and that TLS carries all of it. */
import { readFile } from "node:fs/promises";
import { request as httpsRequest } from "node:https";
import { ConfigError, KeyFile, resolveConfig, startServer } from "@solehold/server";
import { realEnv } from "solehold/internal";
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { selfSignedCertificate } from "./support/certificate.ts";
import { ALL, bearer, keyedServer } from "./support/keys.ts";
import { tempFolder } from "./support/server.ts";

describe("where a server may listen", () => {
  const start = async (flags: Record<string, string>, keys: "some" | "none"): Promise<string> => {
    const dataDir = await tempFolder();
    if (keys === "some") await new KeyFile(dataDir, realEnv).add(ALL);
    const config = resolveConfig({
      flags: { port: "0", store: "memory:", audit: "memory", dataDir, logLevel: "silent", ...flags },
    });
    try {
      const server = await startServer(config);
      await server.close();
      return "started";
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      return (error as Error).message;
    }
  };

  it("is loopback only without keys", async () => {
    expect(await start({ host: "127.0.0.1" }, "none")).toBe("started");
    expect(await start({ host: "localhost" }, "none")).toBe("started");
    expect(await start({ host: "0.0.0.0" }, "none")).toMatch(/no API keys.*solehold keys add/);
    expect(await start({ host: "::" }, "none")).toMatch(/no API keys/);
    expect(await start({ host: "0.0.0.0", behindProxy: "yes" }, "none")).toMatch(/no API keys/);
  });

  it("is anywhere with keys and TLS, or with keys behind a proxy", async () => {
    expect(await start({ host: "0.0.0.0" }, "some")).toMatch(/in the clear.*--tls-cert/);
    expect(await start({ host: "0.0.0.0", behindProxy: "yes" }, "some")).toBe("started");
    const { cert, key } = await selfSignedCertificate();
    expect(await start({ host: "0.0.0.0", tlsCert: cert, tlsKey: key }, "some")).toBe("started");
    expect(await start({ host: "0.0.0.0", tlsCert: cert }, "some")).toMatch(/belong together/);
    expect(await start({ tlsCert: "/nowhere", tlsKey: "/nowhere" }, "some")).toMatch(/cannot be read/);
  });
});

describe("TLS", () => {
  it("carries HTTP and the stream, for clients that trust the certificate", async () => {
    const { cert, key } = await selfSignedCertificate();
    const server = await keyedServer([{}], { host: "0.0.0.0", tlsCert: cert, tlsKey: key });
    const ca = await readFile(cert, "utf8");
    const { port } = new URL(server.url);
    expect(server.url).toMatch(/^https:/);
    const headers = bearer(server.keys[0]);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const call = httpsRequest(`https://localhost:${port}/v1/leases`, { ca, headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      call.on("error", reject);
      call.end();
    });
    expect(status).toBe(200);
    const socket = new WebSocket(`wss://localhost:${port}/v1/stream`, { ca, headers });
    const answer = await new Promise<string>((resolve, reject) => {
      socket.on("open", () => socket.send('{"id":1,"op":"ping"}'));
      socket.on("message", (data) => resolve(String(data)));
      socket.on("error", reject);
    });
    socket.terminate();
    expect(JSON.parse(answer)).toEqual([{ id: 1, status: 200, body: {} }]);
  });
});
