import { expect, test } from "vitest";
import { joined, summary } from "../lib/compete.mjs";
import { decodeMessage, encodeMessage } from "../lib/protobuf.mjs";
import { aheadOfPeers, atLeast, atMost, rowOf } from "../lib/rows.mjs";
import { median, medianRatio, percentile } from "../lib/statistics.mjs";
import { barChart, escapeXml, roundedUp } from "../lib/svg.mjs";
import { format, markdownTable } from "../lib/table.mjs";

test("the median is the middle value, or the mean of the two in the middle, in any order", () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([])).toBeNaN();
});

test("a percentile is the smallest value that so many do not exceed", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect(percentile(hundred, 0.99)).toBe(99);
  expect(percentile(hundred, 0.5)).toBe(50);
  expect(percentile(hundred, 1)).toBe(100);
  expect(percentile([7], 0)).toBe(7);
});

test("statistics leave the order of what they are given", () => {
  const values = [3, 1, 2];
  median(values);
  percentile(values, 0.5);
  expect(values).toEqual([3, 1, 2]);
});

test("a ratio is the middle of the ratios of neighbouring rounds, not the ratio of the medians", () => {
  expect(medianRatio([10, 30, 20], [10, 10, 20])).toBe(1);
});

const rounds = (perSecond: readonly number[]) =>
  perSecond.map((value) => ({ perSecond: value, p50Ms: 1, p99Ms: 2, cpuUs: 3, serverCpuUs: null }));

test("a summary compares with the floor, and knows no ratio without one", () => {
  expect(summary(rounds([2, 4, 6]), rounds([1, 2, 3])).ratio.perSecond).toBe(2);
  expect(summary(rounds([2, 4, 6]), undefined).ratio.perSecond).toBeNull();
});

test("the slices of a round count by what was done in them, not each alike", () => {
  const quick = { latencies: [1, 1, 1], elapsedMs: 3, clientUs: 30, serverUs: 60 };
  const slow = { latencies: [7], elapsedMs: 7, clientUs: 50, serverUs: 20 };
  expect(joined([quick, slow])).toEqual({ perSecond: 400, p50Ms: 1, p99Ms: 7, cpuUs: 20, serverCpuUs: 20 });
  expect(joined([quick, { ...slow, serverUs: null }]).serverCpuUs).toBeNull();
});

const contender = (name: string, role: string, perSecond: number, more: object = {}) => ({
  ...{ name, role, perSecond },
  ratio: { perSecond: perSecond / 100 },
  ...more,
});

const groupOf = (...peers: readonly object[]) => ({
  unit: "pairs",
  contenders: [contender("raw", "floor", 100), contender("solehold", "ours", 150), ...peers],
});

test("a row has the shape that readers of --json rely on", () => {
  const bars = [atLeast(1.4), aheadOfPeers];
  const row = rowOf(groupOf(contender("other", "peer", 120)), { title: "redis", field: "perSecond", bars });
  expect(row).toEqual({
    ...{ case: "redis", unit: "pairs/s", ours: 150, floor: 100, ratio: 1.5, peers: { other: 120 } },
    ...{ bar: ">= 1.4 x floor, ahead of every peer", met: true },
  });
});

test("a bar is missed by the ratio, or by a peer that is ahead and promises as much", () => {
  const metBy = (bars: readonly object[], ...peers: readonly object[]) =>
    rowOf(groupOf(...peers), { title: "redis", field: "perSecond", bars }).met;
  expect(metBy([atLeast(1.6)])).toBe(false);
  expect(metBy([atMost(1.4)])).toBe(false);
  expect(metBy([aheadOfPeers], contender("faster", "peer", 151))).toBe(false);
  expect(metBy([aheadOfPeers], contender("faster", "peer", 151, { promises: "less" }))).toBe(true);
  expect(metBy([])).toBeNull();
});

test("names in a plot cannot become markup", () => {
  expect(escapeXml(`<a href="x">&'`)).toBe("&lt;a href=&quot;x&quot;&gt;&amp;&apos;");
  const bars = [{ label: "<script>", value: 1, role: "ours" }];
  const plot = barChart({ title: "t & u", subtitle: "s", groups: [{ title: "g", unit: "ms", bars }] });
  expect(plot).toContain("&lt;script&gt;");
  expect(plot).toContain("t &amp; u");
  expect(plot).not.toContain("<script>");
});

test("an axis ends at a round number at or above the largest value", () => {
  expect([0.03, 1, 1.5, 2.1, 17.7, 99].map(roundedUp)).toEqual([0.04, 1, 2, 4, 20, 100]);
});

test("figures have three digits and no exponents", () => {
  expect([0, 0.0366, 1.005, 12.34, 123.4, 1_234_567, 3].map(format)).toEqual([
    "0",
    "0.0366",
    "1.00",
    "12.3",
    "123",
    "1,234,567",
    "3",
  ]);
  expect(format(null)).toBe("-");
});

test("a bar in a cell does not end it", () => {
  expect(markdownTable([["a"], ["x|y"]])).toBe("| a |\n| --- |\n| x\\|y |\n");
});

test("a message for etcd survives encoding: small and large numbers, texts, nothing for null", () => {
  const fields = decodeMessage(
    encodeMessage([1, "key"], [2, 300], [3, 200], [5, 0n], [7, null], [20, 2n ** 62n]),
  );
  expect(fields.get(1)).toEqual([Buffer.from("key")]);
  expect(fields.get(2)).toEqual([300n]);
  expect(fields.get(3)).toEqual([200n]);
  expect(fields.get(5)).toEqual([0n]);
  expect(fields.has(7)).toBe(false);
  expect(fields.get(20)).toEqual([2n ** 62n]);
});
