// The tables of docs/capacity.md, a function of artifacts/capacity.json alone.

const [TOTAL, CLIENTS, TTL_S, RENEWED_AFTER] = [10_000_000, 1_000, 600, 1 / 3];
const [BEGIN, END] = ["<!-- capacity: begin -->", "<!-- capacity: end -->"];
/** Stand-ins for services in the cloud: what they cost this machine says nothing. */
const EMULATED = new Set(["s3", "dynamodb"]);

const whole = (number) => Math.round(number).toLocaleString("en-US");

const table = (head, rows) =>
  [head, head.map((_, column) => (column === 0 ? "---" : "---:")), ...rows]
    .map((row) => `| ${row.join(" | ")} |`)
    .join("\n");

/** @type {typeof import("./page.d.mts").tablesOf} */
export function tablesOf({ machine, node, recordBytes, handleBytes, rows }) {
  const measured = rows.map(({ name, version, bytes, batch, clientUs, engineUs, measuredOn, load }) => [
    name,
    version,
    bytes === null ? `${whole(recordBytes)} (its text)` : whole(bytes),
    batch === null ? "one stream" : whole(batch),
    clientUs.toFixed(0),
    EMULATED.has(name) ? "(emulated)" : engineUs === null ? "(in the client)" : engineUs.toFixed(0),
    `${measuredOn}, ${load.toFixed(1)}`,
  ]);
  const renewals = TOTAL / (TTL_S * RENEWED_AFTER);
  const cores = (us) => ((us * renewals) / 1e6).toFixed(1);
  const model = rows.map(({ name, bytes, batch, clientUs, engineUs }) => [
    name,
    `${((TOTAL * (bytes ?? recordBytes)) / 1e9).toFixed(1)} GB`,
    whole(renewals / (batch ?? 1)),
    cores(clientUs),
    EMULATED.has(name) || engineUs === null ? "" : cores(engineUs),
  ]);
  const perClient = ((handleBytes * TOTAL) / CLIENTS / 1e6).toFixed(0);
  return [
    `Measured on ${machine}, Node.js ${node}. "Load" is that of the machine when the row began (1 minute, \`uptime\`).`,
    table(
      [
        ...["engine", "version", "bytes a lease", "renewals in a call, at most"],
        ...["client: us a renewal", "engine: us a renewal", "on, load"],
      ],
      measured,
    ),
    `The handle of a held lease takes ${whole(handleBytes)} bytes in its process, without caches: ${perClient} MB for each of ${whole(CLIENTS)} clients with ${whole(TOTAL / CLIENTS)} leases.`,
    `What ${whole(TOTAL)} live leases with a ttl of ${TTL_S / 60} minutes would cost: ${whole(renewals)} renewals a second, and`,
    table(
      ["engine", "data", "calls/s at least", "cores of all clients together", "cores of the engine"],
      model,
    ),
  ].join("\n\n");
}

/** @type {typeof import("./page.d.mts").withTables} */
export function withTables(page, capacity) {
  const [before, rest = ""] = page.split(BEGIN);
  return `${before}${BEGIN}\n${tablesOf(capacity)}\n${END}${rest.split(END)[1]}`;
}
