/** The short form of `npm run soak`: a few seconds of random stops, kills and restarts on each engine. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const RUN = join(import.meta.dirname, "../../../../soak/run.mjs");

interface Result {
  readonly engine: string;
  readonly grants: number;
  readonly accepted: number;
  readonly counter: number;
  readonly stops: number;
  readonly kills: number;
  readonly restarts: number;
  readonly recoveryMs: number | null;
  readonly violations: readonly string[];
}

interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

function runSoak(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [RUN, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let [output, errors] = ["", ""];
    child.stdout.on("data", (chunk) => {
      output += chunk;
    });
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output, errors }));
  });
}

async function soakOf(engine: string, ...args: readonly string[]): Promise<Ended & { result: Result }> {
  const ended = await runSoak("--engine", engine, "--processes", "4", "--json", ...args);
  const [result] = JSON.parse(ended.output || "[]") as readonly Result[];
  if (result === undefined) throw new Error(`no result: ${ended.errors}`);
  return { ...ended, result };
}

describe("a short soak", () => {
  // The engines at the same time: most of a soak is waiting, and a busy machine is part of the test.
  it.concurrent.each(["embedded", "server", "redis", "postgres", "etcd", "nats"])(
    "of %s loses no update and lets no fence go back",
    async (engine) => {
      const { code, result } = await soakOf(engine, "--seconds", "6");
      expect(result.violations).toEqual([]);
      expect(code).toBe(0);
      expect(result.counter).toBe(result.accepted);
      // How many there are is a matter of the machine; without any the soak would show nothing.
      expect(result.grants).toBeGreaterThan(0);
      expect(result.stops + result.kills).toBeGreaterThan(0);
      if (engine !== "embedded") expect(result.restarts).toBeGreaterThan(0);
    },
  );

  it.concurrent("notices workers that take no lease", async () => {
    const { code, result } = await soakOf("embedded", "--seconds", "2", "--plant", "lease");
    expect(code).toBe(1);
    expect(result.violations.some((text) => text.includes("were lost"))).toBe(true);
    expect(result.violations.some((text) => text.startsWith("fence 1 of"))).toBe(true);
  });

  it.concurrent("names an argument that is wrong", async () => {
    const { code, errors } = await runSoak("--engine", "redis,mongo");
    expect(code).toBe(2);
    expect(errors.trim()).toBe(
      "soak: --engine 'mongo' is not one of embedded, file, server, redis, postgres, mariadb, etcd, nats, dynamodb, s3",
    );
  });
});
