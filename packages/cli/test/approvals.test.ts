import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { run } from "./support/fake-io.ts";
import { startServer } from "./support/server-process.ts";
import { temporaryFolder } from "./support/temporary.ts";

async function office() {
  const folder = temporaryFolder();
  const at = (name: string): string => join(folder, name);
  const signers: unknown[] = [];
  for (const signer of ["alice", "bob", "carol"]) {
    const { stdout } = await run(["keygen", "--out", at(`${signer}.pem`), "--signer", signer, "--json"]);
    signers.push((JSON.parse(stdout) as { signer: unknown }).signer);
  }
  writeFileSync(
    at("policy.json"),
    JSON.stringify({ signers, rules: [{ pattern: "db/*", tier: "Dangerous" }] }),
  );
  const proof = (signer: string) => [
    "--file",
    at("it.json"),
    "--signer",
    signer,
    "--key",
    at(`${signer}.pem`),
  ];
  return {
    folder,
    at,
    proof,
    verify: ["quorum", "verify", "--file", at("it.json"), "--policy", at("policy.json")],
  };
}

const ASK = ["approve", "db/drop", "--holder", "ops-1", "--ttl", "5m"];

describe("approvals", () => {
  it("say in words what is signed, and are not signed unless a person agrees", async () => {
    const { proof, at } = await office();
    const agreed = await run([...ASK, ...proof("alice")], { answer: "yes" });
    expect(agreed.code).toBe(0);
    expect(agreed.stderr).toContain("alice is about to approve, once, and for nothing but this:");
    expect(agreed.stderr).toContain("ops-1 may TAKE the lease db/drop for Operation, for 5m00s (300000 ms)");
    expect(agreed.stderr).toMatch(/valid {4}from \S+Z until \S+Z \(1h00m\)/);
    const before = readFileSync(at("it.json"), "utf8");
    for (const answer of ["no", "y", ""]) {
      const declined = await run(["approve", ...proof("bob")], { answer });
      expect([declined.code, declined.stderr]).toEqual([1, expect.stringContaining("solehold: not signed")]);
    }
    const unattended = await run(["approve", ...proof("bob")]);
    expect([unattended.code, unattended.stderr]).toEqual([2, expect.stringContaining("pass --yes")]);
    expect(readFileSync(at("it.json"), "utf8")).toBe(before);
  });

  it("are enough for a Dangerous key with three signers, and not before", async () => {
    const { proof, verify } = await office();
    await run([...ASK, ...proof("alice"), "--yes"]);
    await run(["approve", ...proof("alice"), "--yes"]);
    await run(["approve", ...proof("bob"), "--yes"]);
    const early = await run(verify);
    expect(early.code).toBe(1);
    expect(early.stdout).toContain("NOT enough: default/db/drop is Dangerous, which needs 3; 2 count");
    expect(early.stdout).toContain("LC_BELOW_QUORUM");
    await run(["approve", ...proof("carol"), "--yes"]);
    const { code, stdout } = await run([...verify, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ passed: true, required: 3, received: 3, failures: [] });
  });

  it("do not count for another request, nor after their time", async () => {
    const { proof, verify, at } = await office();
    await run([...ASK, ...proof("alice"), "--yes"]);
    const file = JSON.parse(readFileSync(at("it.json"), "utf8")) as { request: { ttlMs: number } };
    const late = await run([...verify, "--at", "2999-01-01T00:00:00Z"]);
    expect(late.stdout).toContain("LC_APPROVAL_EXPIRED");
    file.request.ttlMs += 1;
    writeFileSync(at("it.json"), JSON.stringify(file));
    expect((await run(verify)).stdout).toContain("LC_INVALID_SIGNATURE");
  });

  it("name the operator's actions and the grant that they are meant for", async () => {
    const { proof, at } = await office();
    const options = ["--action", "revoke", "--fence", "7", ...proof("bob"), "--yes"];
    const { stderr } = await run(["approve", "db/main", ...options]);
    expect(stderr).toContain(
      "An operator may END the lease db/main at once, only if grant 7 is still current.",
    );
    expect(JSON.parse(readFileSync(at("it.json"), "utf8"))).toMatchObject({
      request: { action: "revoke@7", holder: "-", purpose: "-", ttlMs: 0 },
    });
  });

  it("keep private keys to their owner: mode 600, never overwritten, never printed", async () => {
    const { at, proof, verify } = await office();
    const pem = readFileSync(at("alice.pem"), "utf8");
    expect(statSync(at("alice.pem")).mode & 0o777).toBe(0o600);
    const again = await run(["keygen", "--out", at("alice.pem")]);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("never overwritten")]);
    expect(readFileSync(at("alice.pem"), "utf8")).toBe(pem);
    chmodSync(at("alice.pem"), 0o644);
    const signed = await run([...ASK, ...proof("alice"), "--yes"]);
    expect(signed.stderr).toContain("others may read the private key");
    const secret = pem.split("\n")[1] ?? "";
    const shown = [again, signed, await run(verify)].map(({ stdout, stderr }) => stdout + stderr).join("");
    expect(secret.length).toBeGreaterThan(40);
    expect(shown).not.toContain(secret);
  });

  it("refuse files that are not what they should be, in one line", async () => {
    const { at, proof, verify } = await office();
    await run([...ASK, ...proof("alice"), "--yes"]);
    const second = await run([...ASK, ...proof("bob"), "--yes"]);
    expect([second.code, second.stderr]).toEqual([2, expect.stringContaining("holds a request already")]);
    const other = ["approve", "--file", at("none.json"), "--signer", "bob", "--key", at("bob.pem"), "--yes"];
    expect((await run(other)).stderr).toContain("is not there: give KEY");
    const wrongKey = [
      "approve",
      "--file",
      at("it.json"),
      "--signer",
      "bob",
      "--key",
      at("policy.json"),
      "--yes",
    ];
    expect((await run(wrongKey)).stderr).toMatch(/^solehold: --key \S+: LC_INVALID_KEY[^\n]*\n$/m);
    writeFileSync(at("policy.json"), JSON.stringify({ signers: [], rules: [] }));
    expect(await run(verify)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("cannot be used: rules"),
    });
    writeFileSync(at("policy.json"), "{");
    expect(await run(verify)).toMatchObject({ code: 2, stderr: expect.stringContaining("is not JSON") });
    writeFileSync(at("it.json"), JSON.stringify({ request: { tenant: "" }, approvals: [] }));
    expect((await run(verify)).stderr).toContain("request.tenant");
  });
});

describe("approvals presented to a server", () => {
  it("open a Dangerous key with three signers, once, and only for the very request", async () => {
    const { at, proof } = await office();
    const server = await startServer(["--policy-file", at("policy.json")]);
    onTestFinished(async () => await server.stop());
    const call = (...argv: readonly string[]) =>
      run([...argv, "--server", server.url, "--holder", "ops-1", "--wait", "0"]);
    const denied = await call("acquire", "db/drop", "--ttl", "5m");
    expect([denied.code, denied.stderr]).toEqual([1, expect.stringContaining("QUORUM_NOT_MET")]);
    await run([...ASK, ...proof("alice"), "--yes"]);
    await run(["approve", ...proof("bob"), "--yes"]);
    const presented = ["acquire", "db/drop", "--ttl", "5m", "--approvals", at("it.json")];
    expect((await call(...presented)).code).toBe(1);
    await run(["approve", ...proof("carol"), "--yes"]);
    const other = await call("acquire", "db/drop", "--ttl", "6m", "--approvals", at("it.json"));
    expect([other.code, other.stderr]).toEqual([
      2,
      expect.stringContaining("is for ttlMs 300000, but 360000 is asked for: adjust --ttl"),
    ]);
    const granted = await call(...presented, "--json");
    expect(granted.code, granted.stderr).toBe(0);
    const proofOfGrant = [
      "--server",
      server.url,
      "--holder",
      "ops-1",
      "--token",
      JSON.parse(granted.stdout).token,
    ];
    expect((await run(["release", "db/drop", ...proofOfGrant])).code).toBe(0);
    const again = await call(...presented);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("QUORUM_NOT_MET")]);
    expect((await call("acquire", "unguarded")).code).toBe(0);
    const verified = await run(["audit", "verify", "--server", server.url]);
    expect(verified.code, verified.stderr).toBe(0);
    const trail = (await run(["audit", "ls", "--server", server.url, "--json"])).stdout;
    expect(trail).toContain("QUORUM_NOT_MET");
    for (const { signature } of JSON.parse(readFileSync(at("it.json"), "utf8")).approvals) {
      expect(trail).not.toContain(signature);
    }
  });

  it("are needed by an operator, too", async () => {
    const { at, proof } = await office();
    const server = await startServer(["--policy-file", at("policy.json")]);
    onTestFinished(async () => await server.stop());
    const revoke = ["revoke", "db/main", "--fence", "7", "--server", server.url];
    expect(await run(revoke)).toMatchObject({ code: 1, stderr: expect.stringContaining("QUORUM_NOT_MET") });
    await run(["approve", "db/main", "--action", "revoke", "--fence", "7", ...proof("alice"), "--yes"]);
    for (const signer of ["bob", "carol"]) await run(["approve", ...proof(signer), "--yes"]);
    const approved = await run([...revoke, "--approvals", at("it.json")]);
    expect(approved).toMatchObject({ code: 1, stderr: expect.stringContaining("LEASE_NOT_FOUND") });
    const wrong = await run(["revoke", "db/main", "--server", server.url, "--approvals", at("it.json")]);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('is for action "revoke@7"') });
  });
});

describe("coordinator select", () => {
  it("gives the published choice and the order after it", async () => {
    const argv = ["coordinator", "select", "lease-1", "--nodes", "node-a=10,node-b=5,node-c=8"];
    const product = await run([...argv, "--algorithm", "product-v1"]);
    expect(product).toEqual({ code: 0, stdout: "node-a\n", stderr: "" });
    const { stdout } = await run([...argv, "--all", "--json", "--trace-id", "t1"]);
    const answer = JSON.parse(stdout) as { selected: string; ranked: readonly string[] };
    expect(answer).toMatchObject({ algorithm: "rendezvous-v1", leaseId: "lease-1", traceId: "t1" });
    expect([...answer.ranked].sort()).toEqual(["node-a", "node-b", "node-c"]);
    expect(answer.ranked[0]).toBe(answer.selected);
  });

  it("exits 1 when no node is eligible", async () => {
    const { code, stderr } = await run(["coordinator", "select", "k", "--nodes", "a=0"]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("LC_NO_CANDIDATES")]);
  });
});
