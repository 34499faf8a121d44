/**
 * The replicas of deploy/compose.yaml and deploy/kubernetes.yaml with the commands and settings that stand there, as
 * processes in the place of containers, over one PostgreSQL of the tests. The image itself: scripts/check-image.mjs.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { CliProcess } from "../../packages/cli/test/support/cli-process.ts";
import { temporaryFolder, until } from "../../packages/cli/test/support/temporary.ts";
import { ownDatabase } from "../../packages/solehold/test/guards/sql-clients.ts";
import { ROOT } from "./pages.ts";
import { wordsOf } from "./shell.ts";

interface Replica {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** What says that it is alive, and that it is ready. */
  readonly probes: readonly string[];
}

const read = (name: string): string => readFileSync(join(ROOT, "deploy", name), "utf8");

/** As the Dockerfile sets it. */
const [, image = ""] = /^ENV (.*)$/m.exec(read("Dockerfile")) ?? [];
const imageEnvironment = Object.fromEntries(image.split(" ").map((pair) => pair.split("=")));
const [, healthCheck = ""] = /^HEALTHCHECK .*127\.0\.0\.1:7077(\/\w+)/m.exec(read("Dockerfile")) ?? [];

function composed(): readonly Replica[] {
  const { services } = parse(read("compose.yaml"), { merge: true });
  return ["lease-1", "lease-2"].map((name) => ({ ...services[name], probes: [healthCheck] }));
}

interface Variable {
  readonly name: string;
  readonly value?: string;
}

/** Two pods of the set, with the names that Kubernetes gives them. */
function pods(): readonly Replica[] {
  const [, set] = parseAllDocuments(read("kubernetes.yaml")).map((document) => document.toJS());
  const [container] = set.spec.template.spec.containers;
  return [0, 1].map((index) => {
    const pod = `${set.metadata.name}-${index}`;
    const variables = (container.env as readonly Variable[]).map(({ name, value = pod }) => [name, value]);
    return {
      command: (container.args as readonly string[]).map((arg) => arg.replace("$(POD)", pod)),
      environment: Object.fromEntries(variables),
      probes: [container.livenessProbe.httpGet.path, container.readinessProbe.httpGet.path],
    };
  });
}

/** The words of compose.yaml's first lines that make the key, without those of `docker compose`. */
function keyCommand(database: string): readonly string[] {
  const [, line = ""] = /run --rm lease-1 (keys add [\s\S]*?)\nservices:/.exec(read("compose.yaml")) ?? [];
  const words = wordsOf(line.replaceAll(/\\\n# */g, ""));
  return words.map((word) => (word.startsWith("postgres:") ? database : word));
}

async function ownedBy(database: string): Promise<string> {
  const adding = new CliProcess([...keyCommand(database), "--json"]);
  expect([await adding.exit, adding.stderr]).toEqual([{ code: 0, signal: null }, ""]);
  return JSON.parse(adding.stdout).key;
}

async function start({ command, environment }: Replica, database: string) {
  const inTest = { SOLEHOLD_STORE: database, SOLEHOLD_DATA_DIR: temporaryFolder(), SOLEHOLD_PORT: "0" };
  const server = new CliProcess([...command, "--json"], {
    env: { ...imageEnvironment, ...environment, ...inTest },
  });
  await until("it listens", () => server.hasExited || server.stdout.endsWith("\n"));
  const [, port] = /:(\d+)"/.exec(server.stdout) ?? [];
  if (port === undefined) throw new Error(`it does not listen: ${server.stderr}`);
  return { server, url: `http://127.0.0.1:${port}` };
}

const acquire = (url: string, holder: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${url}/v1/leases/acquire`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ name: "job", holder, ttlMs: 60_000 }),
  });

it.each([
  ["compose.yaml", composed],
  ["kubernetes.yaml", pods],
])("the replicas of %s start, answer their probes, want the key, and share their leases", async (_, all) => {
  const { url: database, drop } = await ownDatabase("postgres", `deploy_${randomBytes(6).toString("hex")}`);
  onTestFinished(drop);
  const authorization = `Bearer ${await ownedBy(database)}`;
  const replicas = all();
  const started = await Promise.all(replicas.map((replica) => start(replica, database)));
  for (const [index, { url }] of started.entries()) {
    for (const probe of replicas[index]!.probes) expect((await fetch(url + probe)).status).toBe(200);
    expect((await acquire(url, "nobody")).status).toBe(401);
  }
  const [first, second] = started;
  const granted = await acquire(first!.url, "one", { authorization });
  expect(granted.status).toBe(200);
  const denied = await acquire(second!.url, "two", { authorization });
  expect([denied.status, await denied.json()]).toMatchObject([409, { heldBy: "one" }]);
  for (const { server } of started) server.kill("SIGTERM");
  for (const { server } of started) expect(await server.exit).toEqual({ code: 0, signal: null });
});
