/** The examples of docs/using-leases.md are run as they stand there. */
import * as diagnostics from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import * as opentelemetry from "../../src/client/opentelemetry.ts";
import type { AcquireAttempt, Lease, LeaseSet } from "../../src/index.ts";
import { runUntilSettled } from "../executor/helpers.ts";
import { clientWorld } from "./helpers.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../../docs/using-leases.md"), "utf8");

const MODULES = { "node:diagnostics_channel": diagnostics, "solehold/opentelemetry": opentelemetry };

/** By heading: the code of its block. */
const EXAMPLES = new Map(
  PAGE.split(/^##+ /m).flatMap((section) => {
    const code = /^```js\n(.*?)^```$/ms.exec(section)?.[1];
    return code === undefined ? [] : [[section.split("\n", 1)[0] ?? "", code] as const];
  }),
);

/** Runs the example with these variables, and returns those that it declares under the given names. */
async function run(title: string, variables: object, ...wanted: readonly string[]): Promise<unknown[]> {
  const code = EXAMPLES.get(title);
  if (code === undefined) throw new Error(`docs/using-leases.md has no example under '${title}'`);
  const body = code.replace(/^import (\{.*\}) from "(.+)";$/gm, "const $1 = modules['$2'];");
  const AsyncFunction = (async () => undefined).constructor as FunctionConstructor;
  const example = AsyncFunction("modules", ...Object.keys(variables), `${body}\nreturn [${wanted.join()}];`);
  return (await example(MODULES, ...Object.values(variables))) as unknown[];
}

it("runs every example of the page", () => {
  expect([...EXAMPLES.keys()]).toEqual([
    "Passing a lease on",
    "Once per period",
    "A delay after an expiry",
    "Slots",
    "Several names at once",
    "A preferred holder",
    "Events",
    "OpenTelemetry",
  ]);
  expect(PAGE.match(/^```js$/gm)).toHaveLength(EXAMPLES.size);
});

it("Passing a lease on", async () => {
  const { leases } = clientWorld();
  const handles = await run("Passing a lease on", { leases }, "old", "next", "adopted");
  const [old, next, adopted] = handles as [Lease, Lease, Lease];
  expect([old.isHeld(), next.isHeld(), adopted.isHeld()]).toEqual([false, false, true]);
  expect(next.fence).toBeGreaterThan(old.fence);
  expect(adopted.fence).toBe(next.fence);
});

it("Once per period", async () => {
  const { leases } = clientWorld();
  const [first, second] = await run("Once per period", { leases }, "first", "second");
  expect(first).toEqual({ ran: true, result: "written" });
  expect(second).toMatchObject({ ran: false, holder: null });
});

it("A delay after an expiry", async () => {
  const { leases, env } = clientWorld();
  const startedMs = env.monotonicMs();
  const [next] = await runUntilSettled(env, run("A delay after an expiry", { leases }, "next"));
  expect((next as Lease).holder).toBe("b");
  expect(env.monotonicMs() - startedMs).toBeGreaterThanOrEqual(15_000);
});

it("Slots", async () => {
  const { leases } = clientWorld();
  const [first, second, third] = await run("Slots", { leases }, "first", "second", "third");
  const held = [first, second] as Lease[];
  expect(held.map(({ slot }) => slot).sort()).toEqual([0, 1]);
  expect((third as AcquireAttempt).ok).toBe(false);
  await held[0]?.release();
  expect((await leases.tryAcquire("gpu", { slots: 2 })).ok).toBe(true);
});

it("Several names at once", async () => {
  const { leases, other } = clientWorld();
  const [set, from] = await run("Several names at once", { leases }, "set", "from");
  expect((from as Lease).name).toBe("account/3");
  expect((set as LeaseSet).isHeld()).toBe(false);
  expect((await other("you").tryAcquire("account/7")).ok).toBe(true);
});

it("A preferred holder", async () => {
  const { leases, env } = clientWorld();
  const [backup, waiting] = (await run(
    "A preferred holder",
    { leases },
    "backup",
    "{ waiting }.waiting",
  )) as [Lease, Promise<Lease>];
  await env.advance(31_000);
  expect((backup as Lease).lossReason).toBe("revoked");
  expect((await waiting).holder).toBe("eu-1");
});

it("Events", async () => {
  const { leases } = clientWorld();
  const lines: string[] = [];
  await run("Events", { leases, lines });
  expect(lines).toEqual(["report after 0 ms", "report released"]);
});

it("OpenTelemetry", async () => {
  const [stop] = await run("OpenTelemetry", {}, "stop");
  (stop as () => void)();
});
