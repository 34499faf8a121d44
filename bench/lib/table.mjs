// One row a figure: what was measured, ours, the floor it is compared with, and the bar it must meet.
export function printTable(results) {
  const rows = results.map((row) => [
    row.case,
    `${format(row.ours)} ${row.unit}`,
    row.floor === null ? "-" : `${format(row.floor)} ${row.unit}`,
    row.ratio === null ? "-" : `${row.ratio.toFixed(2)} x`,
    Object.entries(row.peers)
      .map(([name, value]) => `${name} ${format(value)}`)
      .join(", ") || "-",
    row.bar ?? "-",
    row.met === null ? "" : row.met ? "met" : "MISSED",
  ]);
  const head = ["case", "ours", "floor", "ratio", "peers", "bar", ""];
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column].length)),
  );
  for (const row of [head, ...rows]) {
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join("  ")
        .trimEnd(),
    );
  }
}

function format(value) {
  if (value >= 1_000) return Math.round(value).toLocaleString("en-US");
  return value >= 10 ? value.toFixed(1) : value.toPrecision(3);
}
