// What the test command leaves out when a part of the tests is named. A pure test must not cost what the whole run does.
import { expect, test } from "vitest";
import { planOf, startedFor } from "../../../../scripts/test-plan.mjs";

const WHOLE = { runsChecks: true, preparesAll: true, installsAdapted: true };
const ONLY_THE_TESTS = { runsChecks: false, preparesAll: false, installsAdapted: false };

test.each([[[]], [["--reporter=verbose"]], [["--retry=0", "--no-color"]]])("%j is the whole run", (args) => {
  expect(planOf(args)).toEqual(WHOLE);
});

test.each([
  [["packages/solehold/test/core/decide.test.ts"]],
  [["validity", "--reporter=verbose"]],
  [["-t", "drift"]],
  [["--testNamePattern=drift"]],
  [["--changed"]],
])("%j checks nothing else and starts no engine by itself", (args) => {
  expect(planOf(args)).toEqual(ONLY_THE_TESTS);
});

test("a part that needs other packages installs them, and does nothing else", () => {
  const plan = planOf(["packages/solehold/test/adapters/bullmq.test.ts"]);
  expect(plan).toEqual({ ...ONLY_THE_TESTS, installsAdapted: true });
});

test("engines that were up before the run stay up after it", () => {
  expect(startedFor(["redis", "etcd", "nats"], ["etcd"])).toEqual(["redis", "nats"]);
});
