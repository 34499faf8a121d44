// node scripts/dashboard/frame-rate.mjs [leases]: how many frames a second the table of leases draws while somebody scrolls
// through all of them and some change meanwhile. A timing, and so no test: run it on a machine that does nothing else.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog, resolveConfig, startServer } from "@solehold/server";
import { openExecutor } from "solehold/internal";
import { launchBrowser } from "../browser.mjs";

const COUNT = Number(process.argv[2] ?? 100_000);
const TOGETHER = 2_000;
const SCROLL_MS = 8_000;
const WANTED = 50;

const dataDir = mkdtempSync(join(tmpdir(), "solehold-frames-"));
const config = resolveConfig({
  flags: { port: "0", store: "memory:", audit: "memory", dataDir, leasesPerTenant: String(COUNT * 2) },
});
const server = await startServer(config, { log: createLog("silent") });
const executor = await openExecutor(server.url);
const browser = await launchBrowser();

/** @param {number} index */
async function grant(index) {
  const key = { tenant: "default", name: `job/${String(index).padStart(6, "0")}` };
  const holder = `worker-${index % 50}`;
  await executor.execute({ op: "acquire", key, holder, ttlMs: 3_600_000 }, {});
}

try {
  for (let first = 0; first < COUNT; first += TOGETHER)
    await Promise.all(
      Array.from({ length: Math.min(TOGETHER, COUNT - first) }, (_, offset) => grant(first + offset)),
    );
  const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
  await page.goto(server.url);
  await page
    .getByText(`${COUNT.toLocaleString("en-US")} leases`, { exact: true })
    .waitFor({ timeout: 120_000 });
  const session = await page.context().newCDPSession(page);
  // Processor time of the page's thread, which other programs on the machine do not add to.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busySeconds = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0;
  };
  const before = await busySeconds();
  let changed = 0;
  const changes = setInterval(() => void grant(COUNT + changed++), 50);
  const frames = await page.locator(".table-body").evaluate(
    (body, durationMs) =>
      new Promise((resolve) => {
        const took = /** @type {number[]} */ ([]);
        const startedMs = performance.now();
        let lastMs = startedMs;
        const step = (/** @type {number} */ nowMs) => {
          took.push(nowMs - lastMs);
          lastMs = nowMs;
          const share = (nowMs - startedMs) / durationMs;
          if (share >= 1) return resolve(took.slice(1).sort((a, b) => a - b));
          body.scrollTop = share * (body.scrollHeight - body.clientHeight);
          requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
      }),
    SCROLL_MS,
  );
  clearInterval(changes);
  const busyMs = ((await busySeconds()) - before) * 1_000;
  const took = /** @type {number[]} */ (frames);
  const perSecond = (took.length * 1_000) / took.reduce((sum, ms) => sum + ms, 0);
  const p99 = took[Math.floor(took.length * 0.99)] ?? 0;
  console.log(
    `${COUNT.toLocaleString("en-US")} leases, ${changed} changes meanwhile: ${perSecond.toFixed(1)} frames/s, 99 % within ${p99.toFixed(0)} ms, ${(busyMs / took.length).toFixed(1)} ms of processor time a frame (wanted: ${WANTED} frames/s)`,
  );
  process.exitCode = perSecond >= WANTED ? 0 : 1;
} finally {
  await browser.close();
  await executor.close();
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
}
