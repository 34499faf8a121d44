/** The file store passes the kit of all stores, and the tests of the writer lease by their own names. */
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import { ShiftedEnv } from "../../../src/conformance/shifted-env.ts";
import { ManualEnv, realEnv } from "../../../src/env/index.ts";
import { openFileStore } from "../../../src/stores/file/index.ts";
import { stemOf } from "../../../src/stores/file/names.ts";
import { kitProcess } from "../../conformance/child.ts";
import { EFFORT } from "../../conformance/effort.ts";
import { describeWriterLease } from "../../writer/seed-tests.ts";

const root = mkdtempSync(join(tmpdir(), "solehold-file-"));
const folder = join(root, "kit");
const env = new ShiftedEnv(realEnv, 0);
const open = () => openFileStore({ folder, env });

afterAll(() => rmSync(root, { recursive: true, force: true }));

describeStore(
  "file",
  {
    open,
    openSecond: open,
    effort: EFFORT,
    corrupt: async (key) => appendFileSync(join(folder, "leases", `${stemOf(key)}.lease.json`), "damage"),
  },
  { describe, it },
);
describeLeases(
  "file",
  {
    open,
    openSecond: open,
    jumpClock: (byMs) => env.step(byMs),
    child: () => kitProcess(`file:${folder}`),
    patienceMs: 100_000,
    effort: EFFORT,
  },
  { describe, it },
);

describeWriterLease("file", {
  open: async () => {
    const env = new ManualEnv();
    const store = await openFileStore({ folder: mkdtempSync(join(root, "writer-")), env });
    return { store, pass: (ms) => env.advance(ms) };
  },
});
