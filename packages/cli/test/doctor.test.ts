import { type LeaseKey, MemoryStore, StoreError, StoreExecutor } from "solehold";
import {
  type ApplyReply,
  type ConditionalWrite,
  checkClock,
  type DoctorReport,
  ManualEnv,
  type ReadReply,
  realEnv,
} from "solehold/internal";
import { describe, expect, it } from "vitest";
import { examine } from "../src/actions/doctor/examine.ts";
import { withoutSecrets } from "../src/format/url.ts";
import { run } from "./support/fake-io.ts";
import { temporaryFolder } from "./support/temporary.ts";

function examineStore(store: MemoryStore): Promise<DoctorReport> {
  const open = async () => new StoreExecutor({ store });
  return examine({ url: "memory:", tenant: "default", env: realEnv, open });
}

function statusOf(report: DoctorReport, id: string): string | undefined {
  return report.checks.find((check) => check.id === id)?.status;
}

/** Takes every write, whatever it is conditioned on. */
class BlindStore extends MemoryStore {
  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const { records } = await this.read(writes.map(({ key }) => key));
    return await super.apply(
      writes.map((write, index) => {
        const record = records[index];
        return { ...write, expected: record?.kind === "found" ? record.version : null };
      }),
    );
  }
}

/** Answers from a copy that never gets the second write of a key. */
class ForgetfulStore extends MemoryStore {
  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const reply = await super.apply(writes);
    for (const { key, next } of writes) if (next?.state === "released") await this.#delete(key);
    return reply;
  }

  async #delete(key: LeaseKey): Promise<void> {
    const [record] = (await this.read([key])).records;
    if (record?.kind === "found") await super.apply([{ key, expected: record.version, next: null }]);
  }
}

class UnwritableStore extends MemoryStore {
  override async apply(): Promise<ApplyReply> {
    throw new StoreError("auth", "no permission to write: grant it", { outcome: "not-applied" });
  }
}

class DeadStore extends MemoryStore {
  override async read(): Promise<ReadReply> {
    throw new StoreError("unreachable", "connection refused: start the store", { outcome: "not-applied" });
  }
}

describe("the doctor", () => {
  it("finds a sound store sound, says what it cannot do, and leaves nothing behind", async () => {
    const SOLEHOLD_URL = `embedded:${temporaryFolder()}/data`;
    const { code, stdout } = await run(["doctor"], { env: { SOLEHOLD_URL } });
    expect(code, stdout).toBe(0);
    for (const id of [
      "version",
      "reachable",
      "store",
      "durability",
      "compare-and-swap",
      "clock",
      "permissions",
    ]) {
      expect(stdout).toMatch(new RegExp(`^ok {4}${id} `, "m"));
    }
    const { stdout: listed } = await run(["ls", "--all", "--json"], { env: { SOLEHOLD_URL } });
    expect(JSON.parse(listed)).toEqual({ leases: [], corrupt: [] });
  });

  it("warns of a store that forgets", async () => {
    const report = await examineStore(new MemoryStore());
    expect(report.ok).toBe(true);
    expect(statusOf(report, "durability")).toBe("warn");
  });

  it("fails a store that does not compare before it swaps", async () => {
    const report = await examineStore(new BlindStore());
    expect(report.ok).toBe(false);
    expect(statusOf(report, "compare-and-swap")).toBe("fail");
  });

  it("fails a store that loses what was released", async () => {
    expect(statusOf(await examineStore(new ForgetfulStore()), "fences")).toBe("fail");
  });

  it("says that writing is not permitted", async () => {
    const report = await examineStore(new UnwritableStore());
    expect(report.checks.at(-1)).toMatchObject({
      status: "fail",
      detail: "no permission to write: grant it",
    });
  });

  it("says that the store cannot be reached, and exits 1", async () => {
    const report = await examineStore(new DeadStore());
    expect(report.ok).toBe(false);
    expect(report.checks.at(-1)).toMatchObject({ id: "reachable", status: "fail" });
    const { code } = await run(["doctor", "--store", "embedded:/dev/null/x"]);
    expect(code).toBe(1);
  });

  it("does not print a password that is in the URL", () => {
    expect(withoutSecrets("postgres://me:secret@host:5432/db?password=secret")).not.toContain("secret");
  });
});

describe("the check of the clock", () => {
  const drift = { driftRatio: 0.01, tickMs: 2 };

  async function clockAt(rate: number, offsetMs: number) {
    const env = new ManualEnv();
    const startMs = env.monotonicMs();
    const wallMs = env.wallMs();
    const askTime = async () => Math.floor(wallMs + offsetMs + (env.monotonicMs() - startMs) * rate);
    const check = checkClock({ env, askTime, granularityMs: 1, drift });
    await env.advance(1_000);
    return await check;
  }

  it("passes a clock that is far off but runs true, with a warning", async () => {
    expect((await clockAt(1, 30_000)).status).toBe("ok");
    const far = await clockAt(1, -3_600_000);
    expect(far.status).toBe("warn");
    expect(far.detail).toContain("offset -3600000 ms");
  });

  it("fails a clock that runs faster or slower than leases can bear", async () => {
    expect((await clockAt(1.05, 0)).status).toBe("fail");
    expect((await clockAt(0.95, 0)).status).toBe("fail");
  });
});
