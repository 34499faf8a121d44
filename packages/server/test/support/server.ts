/** A real server on loopback for a test, its log, and a small HTTP client. Everything ends with the test. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog, type RunningServer, resolveConfig, startServer } from "@solehold/server";
import type { ManualEnv } from "solehold/internal";
import { onTestFinished } from "vitest";

/** Answers have many shapes; a test that looks for a field that is not there fails. */
export type Body = ReturnType<typeof JSON.parse>;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; of whatever shape the test expects. */
  readonly body: Body;
  readonly text: string;
}

export interface TestServer {
  readonly server: RunningServer;
  readonly url: string;
  readonly dataDir: string;
  /** Every line that was logged. */
  readonly logged: string[];
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** POST /v1/leases/{command} */
  lease(command: string, body: object, headers?: Record<string, string>): Promise<Answer>;
}

export async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "solehold-server-"));
  onTestFinished(async () => await rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function testServer(
  flags: Record<string, string> = {},
  given: { readonly dataDir?: string; readonly env?: ManualEnv } = {},
): Promise<TestServer> {
  const dataDir = given.dataDir ?? (await tempFolder());
  const logged: string[] = [];
  const log = createLog("debug", { write: (line: string) => void logged.push(line) });
  const config = resolveConfig({
    flags: { port: "0", store: "memory:", audit: "memory", dataDir, ...flags },
  });
  const server = await startServer(config, { log, ...(given.env === undefined ? {} : { env: given.env }) });
  onTestFinished(async () => await whileTimeRuns(given.env, server.close(), async () => undefined));
  const { url } = server;
  const get: TestServer["get"] = (path, headers = {}) => ask(`${url}${path}`, { headers });
  const post: TestServer["post"] = (path, body, headers = {}) =>
    ask(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const lease: TestServer["lease"] = (command, body, headers) => post(`/v1/leases/${command}`, body, headers);
  return { server, url, dataDir, logged, get, post, lease };
}

/**
 * What a manual clock must not hold up: draining, say, which has time limits. It runs no faster than the real one,
 * so that a busy machine does not see leases end while a server closes; where that is all the same, without a pause.
 */
export async function whileTimeRuns(
  env: ManualEnv | undefined,
  step: Promise<void>,
  pause: () => Promise<unknown> = () => new Promise((resolve) => setTimeout(resolve, 5)),
): Promise<void> {
  let done = env === undefined;
  const watched = step.finally(() => {
    done = true;
  });
  watched.catch(() => undefined);
  while (!done) {
    await pause();
    await env?.advance(5);
  }
  await watched;
}

export async function ask(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, init);
  const text = await response.text();
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null };
}

/** Until the condition holds: for what happens in another process or on another connection. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 120_000,
): Promise<void> {
  for (const endMs = performance.now() + limitMs; performance.now() < endMs; ) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`did not happen within ${limitMs} ms: ${what}`);
}
