/** The embedded store passes the kit of all stores, with two clients of one folder. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import { ShiftedEnv } from "../../../src/conformance/shifted-env.ts";
import { realEnv } from "../../../src/env/index.ts";
import { openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { kitProcess } from "../../conformance/child.ts";
import { corruptValue } from "./damage.ts";

const folder = mkdtempSync(join(tmpdir(), "solehold-embedded-"));
const env = new ShiftedEnv(realEnv, 0);
const open = () => openEmbeddedStore({ folder, env });

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeStore(
  "embedded",
  { open, openSecond: open, corrupt: (key) => corruptValue(folder, key) },
  { describe, it },
);
describeLeases(
  "embedded",
  {
    open,
    openSecond: open,
    jumpClock: (byMs) => env.step(byMs),
    child: () => kitProcess(`embedded:${folder}`),
    patienceMs: 100_000,
  },
  { describe, it },
);
