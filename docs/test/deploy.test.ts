/** The files of deploy/ fit this version: the metrics, settings, commands and paths that they name exist. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createLog, resolveConfig, SETTING_NAMES, startServer, variableName } from "@solehold/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { parseArguments } from "../../packages/cli/src/parse/arguments.ts";
import { catalog } from "../../packages/cli/src/registry.ts";
import { ROOT } from "./pages.ts";

const read = (name: string): string => readFileSync(join(ROOT, "deploy", name), "utf8");
const FILES = ["solehold.service", "Dockerfile", "compose.yaml", "kubernetes.yaml"];
const VARIABLES = new Set(SETTING_NAMES.map(variableName));

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

  it("the server's command line is one that it takes", async () => {
    const serve = await catalog.load("serve");
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
    const commands = [pod!, services["lease-1"]!.command!, services["lease-2"]!.command!, ["serve"]];
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
