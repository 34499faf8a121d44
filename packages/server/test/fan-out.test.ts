/** Events for many watchers: in order, in portions, with others between. */
import { ManualEnv } from "solehold/internal";
import { expect, it } from "vitest";
import { FanOut } from "../src/watch/fan-out.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function watchers(fanOut: FanOut<string>, tenant: string | null, count: number) {
  return Array.from({ length: count }, () => {
    const seen: (string | number)[] = [];
    const stop = fanOut.add(tenant, { push: (event) => seen.push(event), missed: (some) => seen.push(some) });
    return { seen, stop };
  });
}

it("a few watchers of a tenant get an event at once, and those of all tenants too", () => {
  const fanOut = new FanOut<string>(new ManualEnv());
  const [own, all, other] = ["a", null, "b"].map((tenant) => watchers(fanOut, tenant, 2));
  fanOut.publish("a", "one");
  for (const { seen } of [...(own ?? []), ...(all ?? [])]) expect(seen).toEqual(["one"]);
  for (const { seen } of other ?? []) expect(seen).toEqual([]);
  expect(fanOut.size).toBe(6);
});

it("thousands get their events in order, a portion in each turn, and others do not wait for them", async () => {
  const fanOut = new FanOut<string>(new ManualEnv());
  const many = watchers(fanOut, "a", 2_000);
  const some = watchers(fanOut, "b", 20);
  for (const event of ["one", "two"]) fanOut.publish("a", event);
  fanOut.publish("b", "own");
  const reached = (event: string): number => many.filter(({ seen }) => seen.includes(event)).length;
  expect(reached("one")).toBe(0);
  await turn();
  expect([reached("one") > 0, reached("one") <= 256]).toEqual([true, true]);
  expect(some.every(({ seen }) => seen.includes("own"))).toBe(true);
  while (reached("two") < 2_000) await turn();
  for (const { seen } of many) expect(seen).toEqual(["one", "two"]);
});

it("who comes later gets nothing of what waits, and who goes nothing any more", async () => {
  const fanOut = new FanOut<string>(new ManualEnv());
  const many = watchers(fanOut, "a", 600);
  fanOut.publish("a", "one");
  many.at(-1)?.stop();
  const [late] = watchers(fanOut, "a", 1);
  fanOut.publish("a", "two");
  while (late?.seen.length === 0) await turn();
  expect(late?.seen).toEqual(["two"]);
  expect(many.at(-2)?.seen).toEqual(["one", "two"]);
  expect(many.at(-1)?.seen).toEqual([]);
});

it("of more than can wait each gets the first, how many are missing, and what follows", async () => {
  const fanOut = new FanOut<string>(new ManualEnv());
  const many = watchers(fanOut, "a", 9);
  for (let event = 1; event <= 1_500; event += 1) fanOut.publish("a", `${event}`);
  const counted = (seen: readonly (string | number)[]): number =>
    seen.reduce<number>((sum, each) => sum + (typeof each === "number" ? each : 1), 0);
  while (many.some(({ seen }) => counted(seen) < 1_500)) await turn();
  for (const { seen } of many) {
    expect([seen[0], counted(seen), seen.length < 1_001]).toEqual(["1", 1_500, true]);
  }
  fanOut.publish("a", "last");
  while (many.some(({ seen }) => seen.at(-1) !== "last")) await turn();
});

it("a gap comes in its place, to all", async () => {
  const fanOut = new FanOut<string>(new ManualEnv());
  const [many, few] = [watchers(fanOut, "a", 100), watchers(fanOut, "b", 1)];
  fanOut.publish("a", "before");
  fanOut.publishGap();
  fanOut.publish("a", "after");
  while (many.some(({ seen }) => seen.length < 3)) await turn();
  for (const { seen } of many) expect(seen).toEqual(["before", 1, "after"]);
  expect(few[0]?.seen).toEqual([1]);
});
