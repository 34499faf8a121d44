/**
 * A store that hangs: every call ends by `callTimeoutMs`, whatever the store's own limit is, and works again afterwards.
 * The stores here would wait for a minute, which is longer than a test may take.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Leases } from "../../src/client/leases.ts";
import { realEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { type Engine, type FaultProxy, startProxy } from "../engines/index.ts";
import { until } from "../stores/records.ts";
import { FAULT_ENGINES } from "./engines.ts";

const PATIENT = { timeoutMs: 60_000 };
const KEY = { tenant: "default", name: "hanging" };

describe.each(FAULT_ENGINES)("$title, when it hangs", ({ start, open }) => {
  let server: Engine;
  let proxy: FaultProxy;

  beforeAll(async () => {
    server = await start();
    proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
  });

  afterAll(async () => {
    await proxy?.close();
    await server?.stop();
  });

  it("holds no command, read, listing or watch longer than callTimeoutMs", async () => {
    const store = await open(server, { proxy, ...PATIENT });
    const executor = new StoreExecutor({ store, callTimeoutMs: 300, commandTimeoutMs: 600 });
    const leases = new Leases({ executor, env: realEnv, holder: "patient" });
    await (await leases.acquire(KEY.name, { ttl: "30s" })).release();
    proxy.freeze();
    const calls = {
      command: leases.tryAcquire("other"),
      read: executor.read(KEY),
      listing: executor.list({ tenant: "default", prefix: "", limit: 10 }),
      ...(store.watch && { watch: executor.watch({ tenant: "default", prefix: "" }, () => undefined) }),
    };
    const ended = await Promise.allSettled(Object.values(calls));
    for (const [index, what] of Object.keys(calls).entries()) {
      const reason = ended[index]?.status === "rejected" ? String(ended[index].reason) : "it was answered";
      expect(`${what}: ${reason}`).toMatch(/within \d{3}(\.\d+)? ms/);
    }
    proxy.heal();
    const again = await until("it works again", () => leases.acquire(KEY.name, { ttl: "30s" }));
    await again.release();
    await leases.close();
  });
});
