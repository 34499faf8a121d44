import { describe, expect, it } from "vitest";
import { run } from "./support/fake-io.ts";
import { temporaryFolder } from "./support/temporary.ts";

/** A store of its own, kept between commands as a user's would be. */
function shell(env: Record<string, string> = {}) {
  const SOLEHOLD_URL = `embedded:${temporaryFolder()}/data`;
  const call = (argv: readonly string[], more: Record<string, string> = {}) =>
    run(argv, { env: { SOLEHOLD_URL, SOLEHOLD_HOLDER: "me", ...env, ...more } });
  return {
    call,
    json: async (argv: readonly string[], more: Record<string, string> = {}) => {
      const { stdout, code } = await call([...argv, "--json"], more);
      return { code, document: JSON.parse(stdout) as Record<string, unknown> };
    },
  };
}

describe("the commands of a holder", () => {
  it("acquire, use, renew and release a lease with the token that acquire printed", async () => {
    const { call, json } = shell();
    const { code, document } = await json(["acquire", "db/main", "--ttl", "60s", "--note", "by hand"]);
    expect(code).toBe(0);
    expect(document).toMatchObject({ tenant: "default", key: "db/main", holder: "me", ttlMs: 60_000 });
    const proof = { SOLEHOLD_TOKEN: String(document.token) };
    expect((await call(["use", "db/main"], proof)).stdout).toContain("may be used for Operation");
    expect((await call(["renew", "db/main", "--ttl", "90s"], proof)).stdout).toContain(
      "is renewed for 1m30s",
    );
    expect((await json(["get", "db/main"])).document).toMatchObject({
      status: "held",
      renewals: 1,
      note: "by hand",
      fence: document.fence,
    });
    expect((await call(["release", "db/main"], proof)).stdout).toBe("db/main is released\n");
    expect((await call(["release", "db/main"], proof)).code).toBe(0);
    const again = await json(["acquire", "db/main"]);
    expect(BigInt(String(again.document.fence))).toBeGreaterThan(BigInt(String(document.fence)));
  });

  it("ls --count says how many leases are alive, and get shows the id of the lease", async () => {
    const { call, json } = shell();
    await call(["acquire", "db/main", "--ttl", "60s"]);
    const { token, fence } = (await json(["acquire", "db/other", "--ttl", "60s"])).document;
    expect((await call(["ls", "--count"])).stdout).toBe("2\n");
    expect((await json(["ls", "db/m", "--count"])).document).toEqual({ count: 1 });
    expect((await json(["get", "db/other"])).document.leaseId).toBe(
      `default/db/other@${BigInt(String(fence))}`,
    );
    await call(["release", "db/other"], { SOLEHOLD_TOKEN: String(token) });
    expect((await call(["ls", "--count"])).stdout).toBe("1\n");
  });

  it("exit 3 and say who holds it and for how long when another has it", async () => {
    const { call, json } = shell();
    await call(["acquire", "job", "--ttl", "60s"]);
    const denied = await call(["acquire", "job", "--holder", "you", "--wait", "0"]);
    expect(denied.code).toBe(3);
    expect(denied.stderr).toMatch(/^solehold: job is held by me, for at most another \d+s\n$/);
    const document = (await json(["acquire", "job", "--holder", "you", "--wait", "20ms"])).document;
    expect(document).toMatchObject({
      error: { code: "LEASE_TIMEOUT", reason: "LEASE_HELD_BY_OTHER", holder: "me" },
      exitCode: 3,
    });
  });

  it("exit 4 when the lease is over, and 1 when only this use is not allowed", async () => {
    const { call, json } = shell();
    const { document } = await json(["acquire", "job", "--purpose", "StateWrite"]);
    const proof = { SOLEHOLD_TOKEN: String(document.token) };
    const mismatch = await call(["use", "job", "--purpose", "Operation"], proof);
    expect([mismatch.code, mismatch.stderr]).toEqual([
      1,
      "solehold: job: it was granted for another purpose (LEASE_PURPOSE_MISMATCH)\n",
    ]);
    await call(["revoke", "job"]);
    for (const argv of [
      ["use", "job", "--purpose", "StateWrite"],
      ["renew", "job"],
    ]) {
      const { code, stderr } = await call(argv, proof);
      expect([code, stderr]).toEqual([
        4,
        "solehold: job: it was revoked: it can be acquired once the time of its last holder is over (LEASE_REVOKED)\n",
      ]);
    }
    expect((await call(["renew", "job", "--token", "wrong"])).code).toBe(4);
    expect((await call(["renew", "never", "--token", "wrong"])).code).toBe(4);
  });

  it("share a name among slots, and list them as one thing", async () => {
    const { call, json } = shell();
    const one = (await json(["acquire", "gpu", "--slots", "2", "--holder", "me"])).document;
    const two = (await json(["acquire", "gpu", "--slots", "2", "--holder", "you"])).document;
    expect([one.slot, two.slot].sort()).toEqual([0, 1]);
    expect((await call(["acquire", "gpu", "--slots", "2", "--wait", "0"])).code).toBe(3);
    await call(["acquire", "other"]);
    const listed = (await call(["ls"])).stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 3));
    const [holders0, holders1] = one.slot === 0 ? ["me", "you"] : ["you", "me"];
    expect(listed.slice(1, 5).map(([title, second, third]) => [title, second || third])).toEqual([
      ["gpu", "2 slots held"],
      ["", "slot 0"],
      ["", "slot 1"],
      ["other", expect.any(String)],
    ]);
    expect([listed[2]?.[2], listed[3]?.[2]]).toEqual([holders0, holders1]);
    const { leases } = (await json(["ls"])).document as { leases: { slotOf: string; slot: number }[] };
    expect(leases.map(({ slotOf, slot }) => `${slotOf} ${slot}`)).toEqual(["gpu 0", "gpu 1", "other 0"]);
    expect((await call(["acquire", "gpu", "--slots", "none"])).stderr).toContain(
      "--slots must be a whole number",
    );
    expect((await call(["acquire", "gpu", "--slots", "999"])).stderr).toContain(
      "slots must be a whole number from 1 to 256",
    );
    expect((await call(["acquire", "gpu", "--priority", "first"])).stderr).toContain(
      "--priority must be a whole number from 0",
    );
    expect((await call(["acquire", "gpu", "--priority", "101"])).stderr).toContain(
      "priority must be a whole number from 0 to 100",
    );
    expect((await call(["acquire", "free", "--priority", "0"])).code).toBe(0);
    expect((await call(["acquire", "gpu#slot/1"])).stderr).toContain("is slot 1 of 'gpu'");
  });

  it("keep others out for a minimum hold, and say until when", async () => {
    const { call, json } = shell();
    const { document } = await json(["acquire", "report", "--at-least", "1h", "--lock-delay", "5s"]);
    await call(["release", "report"], { SOLEHOLD_TOKEN: String(document.token) });
    const denied = await call(["acquire", "report", "--holder", "you", "--wait", "0"]);
    expect(denied.code).toBe(3);
    expect(denied.stderr).toMatch(
      /^solehold: report is not free: it is closed: .*, for at most another \d+m/,
    );
    expect((await json(["get", "report"])).document).toMatchObject({ lockDelayMs: 5_000 });
    expect((await call(["acquire", "report", "--at-least", "soon"])).stderr).toContain("--at-least");
    expect((await call(["revoke", "report"])).code).toBe(0);
    expect((await call(["acquire", "report", "--holder", "you", "--wait", "0"])).code).toBe(0);
  });

  it("hand a lease to a successor before any other holder", async () => {
    const { call, json } = shell();
    const { document } = await json(["acquire", "db"]);
    const proof = { SOLEHOLD_TOKEN: String(document.token) };
    const { stdout } = await call(["handoff", "db", "--to", "replica-2", "--within", "60s"], proof);
    expect(stdout).toBe("db is reserved for replica-2, for 1m00s\n");
    const other = await call(["acquire", "db", "--holder", "replica-3", "--wait", "0"]);
    expect([other.code, other.stderr]).toEqual([
      3,
      expect.stringContaining("reserved for replica-2, for at most another"),
    ]);
    const successor = await json(["acquire", "db", "--holder", "replica-2", "--wait", "0"]);
    expect(successor.document).toMatchObject({ holder: "replica-2", resumeRequired: true });
  });

  it("give the same grant for the same idempotency key", async () => {
    const { json } = shell();
    const argv = ["acquire", "job", "--idempotency-key", "order-7"];
    const first = await json(argv);
    const second = await json(argv);
    expect(second.document).toMatchObject({ token: first.document.token, fence: first.document.fence });
    const altered = await json([...argv, "--ttl", "45s"]);
    expect(altered).toMatchObject({ code: 2, document: { error: { reason: "IDEMPOTENCY_KEY_REUSED" } } });
  });

  it("show a person how to go on after acquire", async () => {
    const { call } = shell();
    const { stdout } = await call(["acquire", "it's mine"]);
    expect(stdout).toContain("it's mine is yours for");
    expect(stdout).toMatch(/export SOLEHOLD_TOKEN=[\w-]{22}\n/);
    expect(stdout).toContain("solehold renew 'it'\\''s mine'");
  });
});

describe("the commands of an operator", () => {
  it("revoke and break only the grant with the fence that was named", async () => {
    const { call, json } = shell();
    const fence = BigInt(String((await json(["acquire", "job"])).document.fence)).toString();
    const stale = await call(["revoke", "job", "--fence", "7"]);
    expect([stale.code, stale.stderr]).toEqual([1, expect.stringContaining("another grant is current")]);
    expect((await call(["break", "job", "--period", "10s", "--fence", fence])).code).toBe(0);
    expect((await call(["get", "job"])).stdout).toMatch(/^state {5}breaking$/m);
    expect((await call(["revoke", "job", "--fence", fence])).stdout).toContain("me may still believe in it");
    const twice = await call(["revoke", "job"]);
    expect([twice.code, twice.stderr]).toEqual([1, expect.stringContaining("LEASE_ALREADY_REVOKED")]);
    expect((await call(["revoke", "nothing"])).code).toBe(1);
  });
});

describe("looking", () => {
  it("get exits 1 and gives null for a key that was never held", async () => {
    const { call } = shell();
    expect(await call(["get", "job", "--json"])).toMatchObject({ code: 1, stdout: "null\n" });
    expect((await call(["get", "job"])).stdout).toBe("job: nothing was ever granted\n");
  });

  it("ls shows what is held as a table, and with --all what has ended", async () => {
    const { call, json } = shell();
    await call(["acquire", "job/1"]);
    await call(["acquire", "job/2", "--holder", "you"]);
    await call(["acquire", "other"]);
    await call(["revoke", "job/2"]);
    const { stdout } = await call(["ls", "job/"]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^KEY +HOLDER +FENCE +STATE +REMAINING +PURPOSE$/);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/^job\/1 +me +\d+ +held +\d+s +Operation$/);
    expect((await call(["ls", "--all"])).stdout).toMatch(/^job\/2 +you +\d+ +revoked +- +Operation$/m);
    const { document } = await json(["ls", "--all", "--holder", "you"]);
    expect(document).toMatchObject({
      leases: [{ key: "job/2", state: "revoked", live: false }],
      corrupt: [],
    });
    expect((await json(["ls", "--all", "--limit", "2"])).document.leases).toHaveLength(2);
    expect(await call(["ls", "nothing/"])).toEqual({
      code: 0,
      stdout: "",
      stderr: "solehold: no leases to show\n",
    });
  });

  it("ls fits a terminal and colours the state there", async () => {
    const SOLEHOLD_URL = `embedded:${temporaryFolder()}/data`;
    const env = { SOLEHOLD_URL, SOLEHOLD_HOLDER: "h".repeat(100) };
    await run(["acquire", "job"], { env });
    const { stdout } = await run(["ls"], { env, terminal: { columns: 60 } });
    expect(stdout).toContain("\u001b[32mheld ");
    expect(stdout).toContain("hhh…");
  });

  it("no answer but that of acquire has the token in it", async () => {
    const { call, json } = shell();
    const token = String((await json(["acquire", "job"])).document.token);
    const proof = { SOLEHOLD_TOKEN: token };
    const argvs = [
      ["get", "job"],
      ["ls"],
      ["use", "job"],
      ["use", "job", "--purpose", "StateWrite"],
      ["renew", "job"],
      ["renew", "job", "--ttl", "9h"],
      ["break", "job", "--period", "1h"],
      ["doctor"],
      ["release", "job"],
      ["get", "job"],
    ];
    for (const argv of argvs) {
      for (const format of [[], ["--json"]]) {
        const { stdout, stderr } = await call([...argv, ...format], proof);
        expect(stdout + stderr, argv.join(" ")).not.toContain(token);
      }
    }
  });

  it("keeps tenants apart", async () => {
    const { call } = shell();
    await call(["acquire", "job", "--tenant", "a"]);
    expect((await call(["acquire", "job", "--wait", "0"], { SOLEHOLD_TENANT: "b" })).code).toBe(0);
    expect((await call(["ls", "--tenant", "c"])).stdout).toBe("");
  });
});
