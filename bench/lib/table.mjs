// The same tables for a terminal and for Markdown: one row a figure, and one row a contender.

const ROW_HEAD = ["case", "ours", "floor", "ratio", "limit", "peers", "bar", ""];
const CONTENDER_HEAD = [
  "",
  "a second",
  "p50 ms",
  "p99 ms",
  "client us each",
  "server us each",
  "rate, p50, client us against the floor",
];

export function figureCells(rows) {
  return [ROW_HEAD, ...rows.map(cellsOfRow)];
}

export function contenderCells({ contenders }) {
  return [
    CONTENDER_HEAD,
    ...contenders.map(({ name, perSecond, p50Ms, p99Ms, cpuUs, serverCpuUs, ratio }) => [
      name,
      format(perSecond),
      format(p50Ms),
      format(p99Ms),
      format(cpuUs),
      format(serverCpuUs),
      [ratio.perSecond, ratio.p50Ms, ratio.cpuUs].map(times).join(", "),
    ]),
  ];
}

export function textTable(cells) {
  const widths = cells[0].map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join("  ")
      .trimEnd(),
  );
  return `${lines.join("\n")}\n`;
}

export function markdownTable(cells) {
  const line = (row) => `| ${row.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  const [head, ...rows] = cells;
  return `${[line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n")}\n`;
}

/** Three significant digits, no exponents. */
export function format(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  if (size === 0) return "0";
  const digits = Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(size))));
  return Number.isInteger(value) ? String(value) : value.toFixed(digits);
}

export function times(ratio) {
  return ratio === null || ratio === undefined ? "-" : `${ratio.toFixed(2)} x`;
}

function cellsOfRow({ case: title, ours, unit, floor, ratio, limit, peers, bar, met, note }) {
  if (ours === null) return [title, "not measured", "-", "-", "-", "-", bar ?? "-", note ?? ""];
  return [
    title,
    `${format(ours)} ${unit}`,
    format(floor),
    times(ratio),
    times(limit),
    Object.entries(peers)
      .map(([name, value]) => `${name} ${format(value)}`)
      .join(", ") || "-",
    bar ?? "-",
    met === null ? "" : met ? "met" : "MISSED",
  ];
}
