/** The files of deploy/ fit this version: the metrics, settings, commands and paths that they name exist. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createLog, resolveConfig, SETTING_NAMES, startServer, variableName } from "@solehold/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { parseArguments } from "../../packages/cli/src/parse/arguments.ts";
import { COMMANDS } from "../../packages/cli/src/registry.ts";
import { checkAlerts } from "../../scripts/check-alerts.mjs";
import { ROOT } from "./pages.ts";

const read = (name: string): string => readFileSync(join(ROOT, "deploy", name), "utf8");
const FILES = ["solehold.service", "Dockerfile", "compose.yaml", "kubernetes.yaml"];
/** Where the server listens by default. */
const DEFAULT_URL = "http://127.0.0.1:7077";
const VARIABLES = new Set(SETTING_NAMES.map(variableName));
/** Where the image keeps what must outlive it. */
const [, DATA_FOLDER = ""] = /SOLEHOLD_DATA_DIR=(\S+)/.exec(read("Dockerfile")) ?? [];

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}
interface Board {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
}
const rules = (parse(read("prometheus-alerts.yaml")) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const board = JSON.parse(read("grafana-dashboard.json")) as Board;

/** The names of the server's metrics, with those that Prometheus makes of a histogram. */
let metrics: ReadonlySet<string>;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "solehold-deploy-"));
  const flags = { port: "0", store: "memory:", dataDir: folder };
  const server = await startServer(resolveConfig({ flags, env: {} }), { log: createLog("silent") });
  const text = await (await fetch(`${server.url}/metrics`)).text();
  await server.close();
  const found = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
  metrics = new Set(
    found.flatMap(([, name = "", type]) =>
      type === "histogram" ? [`${name}_bucket`, `${name}_count`] : name,
    ),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("deployment files", () => {
  it.each([
    ["alert rules", () => rules.map(({ expr }) => expr)],
    ["Grafana's panels", () => board.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))],
  ])("%s ask only for metrics that the server has", (_, expressions) => {
    const named = expressions().flatMap((expr) => expr.match(/solehold_\w+/g) ?? []);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !metrics.has(name))).toEqual([]);
  });

  it("every alert has a severity, a sentence, and a heading in the operations page", () => {
    const page = readFileSync(join(ROOT, "docs/operations.md"), "utf8");
    for (const { alert, labels, annotations } of rules) {
      expect(["page", "ticket"]).toContain(labels.severity);
      expect(annotations.summary).not.toBe("");
      expect(page).toContain(`### ${alert}`);
    }
  });

  it.each(FILES)("%s names settings that exist", (name) => {
    const named = read(name).match(/\bSOLEHOLD_[A-Z_]+\b(?!\.\.\.)/g) ?? [];
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((variable) => !VARIABLES.has(variable))).toEqual([]);
  });

  it("the server's command line is one that it takes", () => {
    const serve = COMMANDS.find(({ name }) => name === "serve");
    const [pod] = parseAllDocuments(read("kubernetes.yaml"))
      .map(
        (document) =>
          document.toJS() as {
            kind: string;
            spec: { template: { spec: { containers: { args: string[] }[] } } };
          },
      )
      .filter(({ kind }) => kind === "StatefulSet")
      .map(({ spec }) => spec.template.spec.containers[0]!.args);
    const { services } = parse(read("compose.yaml"), { merge: true }) as {
      services: Record<string, { command?: string[] }>;
    };
    const [, image = "[]"] = /^CMD (.*)$/m.exec(read("Dockerfile")) ?? [];
    const composed = ["lease-1", "lease-2"].map((name) => services[name]!.command!);
    const commands = [pod!, ...composed, JSON.parse(image) as string[]];
    for (const [command, ...rest] of commands) {
      expect(command).toBe("serve");
      expect(() => parseArguments(serve!, rest)).not.toThrow();
    }
  });

  it("the Dockerfile copies and installs what is there", () => {
    const copied = [...read("Dockerfile").matchAll(/^COPY (?!--from)(\S+) /gm)].map(([, from]) => from!);
    expect(copied).toEqual(["."]);
    for (const path of ["package-lock.json", "packages/cli/package.json"])
      expect(existsSync(join(ROOT, path))).toBe(true);
    expect(existsSync(join(ROOT, ".dockerignore"))).toBe(true);
  });

  it("the Dockerfile installs the tested version of every store's client", () => {
    const { peerDependencies, devDependencies } = JSON.parse(
      readFileSync(join(ROOT, "packages/solehold/package.json"), "utf8"),
    );
    const server = JSON.parse(readFileSync(join(ROOT, "packages/server/package.json"), "utf8"));
    const installed = read("Dockerfile");
    const missing = Object.keys(peerDependencies)
      .filter((name) => !(name in server.dependencies))
      .map((name) => `${name}@${devDependencies[name]}`)
      .filter((versioned) => !installed.includes(` ${versioned} `) && !installed.includes(` ${versioned}\n`));
    expect(missing).toEqual([]);
  });

  it("the Dockerfile's health check tells a server that serves from one that does not", async () => {
    const [, script = ""] = /^HEALTHCHECK CMD node -e "(.*)"$/m.exec(read("Dockerfile")) ?? [];
    const flags = { port: "0", store: "memory:", dataDir: join(folder, "health") };
    const server = await startServer(resolveConfig({ flags, env: {} }), { log: createLog("silent") });
    expect(script).toContain(DEFAULT_URL);
    const check = (): Promise<number> =>
      promisify(execFile)(process.execPath, ["-e", script.replace(DEFAULT_URL, server.url)]).then(
        () => 0,
        ({ code }) => code,
      );
    expect(await check()).toBe(0);
    await server.close();
    expect(await check()).toBe(1);
  });

  it("Kubernetes probes the routes that say so, on the port of the server, and waits for its drain", async () => {
    const documents = parseAllDocuments(read("kubernetes.yaml")).map((document) => {
      expect(document.errors).toEqual([]);
      return document.toJS();
    });
    const [service, set] = documents;
    expect(documents.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)).toEqual([
      "v1 Service",
      "apps/v1 StatefulSet",
    ]);
    const { template, volumeClaimTemplates, selector, serviceName } = set.spec;
    const [container] = template.spec.containers;
    const port = Number(new URL(DEFAULT_URL).port);
    expect(serviceName).toBe(service.metadata.name);
    expect(template.metadata.labels).toMatchObject(service.spec.selector);
    expect(template.metadata.labels).toMatchObject(selector.matchLabels);
    expect(service.spec.ports).toEqual([{ name: "http", port }]);
    expect(container.ports).toEqual([{ name: "http", containerPort: port }]);
    expect(container.livenessProbe.httpGet).toEqual({ path: "/healthz", port: "http" });
    expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "http" });
    expect(container.startupProbe.httpGet).toEqual({ path: "/healthz", port: "http" });
    const volumes = volumeClaimTemplates.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
    expect(container.volumeMounts).toEqual(volumes.map((name: string) => ({ name, mountPath: DATA_FOLDER })));
    // The user `node` of the image.
    expect(template.spec.securityContext).toEqual({ runAsNonRoot: true, runAsUser: 1_000, fsGroup: 1_000 });
    const { drainMs, drainDelayMs } = resolveConfig({ flags: {}, env: environmentOf(container.env) });
    expect(template.spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(drainMs + drainDelayMs);
    // A probe that fails for as long as this is seen before connections are refused.
    expect(drainDelayMs).toBeGreaterThan(container.readinessProbe.periodSeconds * 1_000);
  });

  it("compose gives each replica a name and a folder of its own, on one store, and time to drain", () => {
    const { services, volumes } = parse(read("compose.yaml"), { merge: true });
    const replicas = ["lease-1", "lease-2"].map((name) => ({ name, ...services[name] }));
    const { POSTGRES_PASSWORD, POSTGRES_DB } = services.database.environment;
    for (const { name, environment, volumes: mounted, depends_on, build, ...replica } of replicas) {
      expect(environment.SOLEHOLD_NODE_ID).toBe(name);
      const store = `postgres://postgres:${POSTGRES_PASSWORD}@database/${POSTGRES_DB}`;
      expect(environment.SOLEHOLD_STORE).toBe(store);
      expect(mounted).toEqual([`${name}:${DATA_FOLDER}`]);
      expect(depends_on).toEqual(["database"]);
      const { drainMs, drainDelayMs } = resolveConfig({ flags: {}, env: environment });
      expect(Number.parseInt(replica.stop_grace_period, 10) * 1_000).toBeGreaterThan(drainMs + drainDelayMs);
      expect(existsSync(join(ROOT, "deploy", build.context, build.dockerfile))).toBe(true);
    }
    expect(Object.keys(volumes)).toEqual(["database", "lease-1", "lease-2"]);
  });

  it("promtool accepts the alert rules, and they fire and are quiet as the cases say", async () => {
    expect(await checkAlerts()).toMatch(/Checking.*SUCCESS.*Unit Testing.*SUCCESS/s);
  }, 120_000);

  it("promtool objects when a threshold is not that of the cases", async () => {
    const changed = read("prometheus-alerts.yaml").replace(/> [\d.]+$/gm, "> 1000000");
    writeFileSync(join(folder, "prometheus-alerts.yaml"), changed);
    writeFileSync(join(folder, "prometheus-alerts.test.yaml"), read("prometheus-alerts.test.yaml"));
    await expect(checkAlerts(folder)).rejects.toThrow(/got:\[\]/);
  }, 120_000);

  it("every alert has cases for promtool: one in which it fires", () => {
    interface Case {
      readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts?: unknown }[];
    }
    const { tests } = parse(read("prometheus-alerts.test.yaml")) as { tests: Case[] };
    const fired = tests.flatMap(({ alert_rule_test }) =>
      alert_rule_test.filter(({ exp_alerts }) => exp_alerts !== undefined).map(({ alertname }) => alertname),
    );
    expect(new Set(fired)).toEqual(new Set(rules.map(({ alert }) => alert)));
  });

  it("systemd accepts the unit, where systemd is installed", async () => {
    const verified = await promisify(execFile)("systemd-analyze", [
      "verify",
      join(ROOT, "deploy/solehold.service"),
    ]).catch((error) => (error.code === "ENOENT" ? { stderr: "" } : error));
    expect(
      String(verified.stderr)
        .split("\n")
        .filter((line) => line.includes("solehold.service")),
    ).toEqual([]);
  });
});

/** The plain values of a container's environment. */
function environmentOf(list: readonly { name: string; value?: string }[]): Record<string, string> {
  return Object.fromEntries(list.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])));
}
