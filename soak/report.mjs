// What a soak shows: a line of progress on a terminal, and in the end a table or JSON.

const COLUMNS = [
  ["engine", ({ engine }) => engine],
  ["version", ({ version }) => version],
  ["grants", ({ grants }) => String(grants)],
  ["writes", ({ accepted }) => String(accepted)],
  ["counter", ({ counter }) => String(counter)],
  ["refused", ({ refused }) => String(refused)],
  ["stops", ({ stops }) => String(stops)],
  ["kills", ({ kills }) => String(kills)],
  ["restarts", ({ restarts }) => String(restarts)],
  ["recovered in ms", ({ recoveryMs }) => String(recoveryMs ?? "never")],
  ["result", ({ violations }) => (violations.length === 0 ? "kept" : `${violations.length} BROKEN`)],
];
const MOST_VIOLATIONS_SHOWN = 20;

export function printProgress({ engine, elapsedSeconds, accepted, refused, stops, kills, restarts }) {
  if (!process.stderr.isTTY) return;
  const seconds = Math.max(0, elapsedSeconds).toFixed(0);
  process.stderr.write(
    `\r\x1b[K${engine} ${seconds} s: ${accepted} writes, ${refused} refused, ${stops} stops, ${kills} kills, ${restarts} restarts`,
  );
}

/** @param {readonly any[]} results */
export function printResults(results, json) {
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  if (json) {
    console.log(JSON.stringify(results, null, 2));
    return;
  }
  const rows = [
    COLUMNS.map(([title]) => title),
    ...results.map((result) => COLUMNS.map(([, of]) => of(result))),
  ];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join("  ")
        .trimEnd(),
    );
  for (const { engine, violations } of results) {
    for (const violation of violations.slice(0, MOST_VIOLATIONS_SHOWN))
      console.error(`${engine}: ${violation}`);
    const more = violations.length - MOST_VIOLATIONS_SHOWN;
    if (more > 0) console.error(`${engine}: and ${more} more`);
  }
}
