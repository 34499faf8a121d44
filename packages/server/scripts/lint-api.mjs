/** Lints /openapi.json of a running server with redocly, by npx: `npm run lint:api -w packages/server`. Needs the build. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig, startServer } from "@solehold/server";

const REDOCLY = "@redocly/cli@2.77.0";

const folder = mkdtempSync(join(tmpdir(), "solehold-api-"));
const flags = { port: "0", store: "memory:", audit: "memory", dataDir: folder, logLevel: "silent" };
const server = await startServer(resolveConfig({ flags }));
try {
  const file = join(folder, "openapi.json");
  writeFileSync(file, await (await fetch(`${server.url}/openapi.json`)).text());
  const config = join(folder, "redocly.yaml");
  writeFileSync(config, "extends: [recommended]\ntelemetry: off\n");
  const { status } = spawnSync(
    "npx",
    ["--yes", REDOCLY, "lint", file, "--config", config, "--max-problems", "50"],
    { stdio: "inherit", cwd: folder },
  );
  process.exitCode = status ?? 1;
} finally {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
}
