/** deploy/nginx.conf in a real nginx: requests, the stream, watches and the pages of a server come through it. */
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { resolveConfig } from "@solehold/server";
import { expect, it, onTestFinished } from "vitest";
import WebSocket from "ws";
import { CliProcess } from "../../packages/cli/test/support/cli-process.ts";
import { until } from "../../packages/cli/test/support/temporary.ts";
import { selfSignedCertificate } from "../../packages/server/test/support/certificate.ts";
import { bearer, keyedServer } from "../../packages/server/test/support/keys.ts";
import { startNginx } from "../../scripts/nginx.mjs";
import { ROOT } from "./pages.ts";

const SITE = readFileSync(join(ROOT, "deploy/nginx.conf"), "utf8");

/** A server with one key, a second address where none listens, and nginx in front of both. */
async function proxied() {
  const { url, logged, keys } = await keyedServer([{}], { behindProxy: "yes" });
  const { cert, key } = await selfSignedCertificate();
  const { port, stop } = await startNginx((port) =>
    SITE.replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
      .replace("127.0.0.1:7077", new URL(url).host)
      .replace("127.0.0.1:7078", "127.0.0.1:1")
      .replace("/etc/nginx/leases.example.pem", cert)
      .replace("/etc/nginx/leases.example.key", key),
  );
  onTestFinished(stop);
  return {
    url: `https://localhost:${port}`,
    logged,
    authorization: bearer(keys[0]),
    apiKey: keys[0] ?? "",
    cert,
  };
}

/** Status and text of an answer that comes by TLS. */
function ask(url: string, headers: Record<string, string>, ca: Buffer): Promise<readonly [number, string]> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { headers, ca, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      answer.once("end", () => resolve([answer.statusCode ?? 0, text]));
    });
    outgoing.once("error", reject).end();
  });
}

it("passes on leases, watches, the stream and the pages' requests, and says who asks", async () => {
  const { url, logged, authorization, apiKey, cert } = await proxied();
  const ca = readFileSync(cert);
  const env = { SOLEHOLD_API_KEY: apiKey, NODE_EXTRA_CA_CERTS: cert };
  const server = ["--server", url];
  const get = (path: string, headers: Record<string, string>) => ask(`${url}${path}`, headers, ca);

  const watching = new CliProcess(["watch", "job", "--json", ...server], { env });
  await until("it watches", async () =>
    /solehold_watchers [1-9]/.test((await get("/metrics", authorization))[1]),
  );
  const running = new CliProcess(["run", "job", ...server, "--", "sh", "-c", "echo $SOLEHOLD_FENCE"], {
    env,
  });
  expect([await running.exit, running.stderr]).toEqual([{ code: 0, signal: null }, ""]);
  const fence = running.stdout.trim();
  await until("the watcher has seen the lease", () => watching.stdout.includes(fence));

  const stream = new WebSocket(`${url.replace("https", "wss")}/v1/stream`, { headers: authorization, ca });
  await new Promise((resolve, reject) => void stream.once("open", resolve).once("error", reject));
  stream.terminate();

  // The page's own requests bring the origin that the browser knows: nginx's.
  expect(await get("/v1/leases", { ...authorization, origin: url })).toMatchObject([200, expect.any(String)]);
  // What a caller says about itself is not believed.
  expect(await get("/v1/leases", { "x-forwarded-for": "203.0.113.9" })).toMatchObject([
    401,
    expect.any(String),
  ]);
  const refusal = logged.find((line) => line.includes("was not let in")) ?? "{}";
  expect(JSON.parse(refusal)).toMatchObject({ address: "127.0.0.1" });
});

it("waits for longer than a request may, and takes as much as the server does", () => {
  const { waitLimitMs, bodyLimitBytes } = resolveConfig({ flags: {}, env: {} });
  const [, seconds] = /proxy_read_timeout (\d+)s;/.exec(SITE) ?? [];
  const [, megabytes] = /client_max_body_size (\d+)m;/.exec(SITE) ?? [];
  expect(Number(seconds) * 1_000).toBeGreaterThan(waitLimitMs);
  expect(Number(megabytes) * 2 ** 20).toBe(bodyLimitBytes);
});
