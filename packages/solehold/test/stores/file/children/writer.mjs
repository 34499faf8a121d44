// Raises a counter in the folder of its argument until it is killed; says something after the first time.
import { openFileStore } from "solehold/file";

const [folder = ""] = process.argv.slice(2);
const key = { tenant: "default", name: "counter" };
const store = await openFileStore({ folder, timeoutMs: 20_000 });
const empty = {
  key,
  holder: "worker",
  purpose: "Operation",
  tokenHash: "",
  term: 0n,
  generation: 0n,
  ttlMs: 1_000,
  grantedAtMs: 0,
  renewedAtMs: 0,
  expiresAtMs: 0,
  endedAtMs: null,
  state: "held",
  renewals: 0,
  resumeRequired: false,
  breakAtMs: null,
  minHoldUntilMs: null,
  lockDelayMs: 0,
  handoff: null,
  reservation: null,
  ticket: "",
  nonce: "",
  idempotency: null,
  note: "",
  metadata: {},
};
for (let count = 0, won = 0; ; count += 1) {
  const [stored] = (await store.read([key])).records;
  const record = stored.kind === "found" ? stored.record : empty;
  const next = { ...record, generation: record.generation + 1n, nonce: `${process.pid}-${count}` };
  const expected = stored.kind === "found" ? stored.version : null;
  const [result] = (await store.apply([{ key, expected, next }])).results;
  won += result.kind === "applied" ? 1 : 0;
  if (won === 3) process.stdout.write("going\n");
}
