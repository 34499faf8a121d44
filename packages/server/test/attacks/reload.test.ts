/** SIGHUP: certificates and approval rules are read again, or stay as they were. */
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { generateSigningKey } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { selfSignedCertificate } from "../support/certificate.ts";
import { keyedServer } from "../support/keys.ts";
import { tempFolder, testServer } from "../support/server.ts";

/** The fingerprint of the certificate that new connections get. */
async function certificateOf(url: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const socket = connect({ port: Number(new URL(url).port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

describe("a reload", () => {
  it("brings the new certificate to new connections, and keeps the old one if the files do not fit", async () => {
    const [first, second] = [await selfSignedCertificate(), await selfSignedCertificate()];
    const folder = await tempFolder();
    const [tlsCert, tlsKey] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    await copyFile(first.cert, tlsCert);
    await copyFile(first.key, tlsKey);
    const { url, server, logged } = await keyedServer([{}], { tlsCert, tlsKey });
    const before = await certificateOf(url);
    await copyFile(second.cert, tlsCert);
    await server.reload();
    expect(await certificateOf(url)).toBe(before);
    expect(logged.join("")).toContain("the known ones stay in force");
    await copyFile(second.key, tlsKey);
    await server.reload();
    expect(await certificateOf(url)).not.toBe(before);
  });

  it("brings new approval rules, with an entry in the audit, and keeps the old ones if the file is broken", async () => {
    const policyFile = join(await tempFolder(), "policy.json");
    const { publicKey } = generateSigningKey();
    const write = async (pattern: string): Promise<void> => {
      const signers = [{ signerId: "alice", keys: [{ publicKey }] }];
      const thresholds = { standard: 1, risky: 1, dangerous: 1 };
      const rules = [{ pattern, tier: "Standard" }];
      await writeFile(policyFile, JSON.stringify({ signers, thresholds, rules }));
    };
    await write("a/*");
    const { server, lease } = await testServer({ policyFile });
    const statuses = async (job: string) => {
      const names = [`a/${job}`, `b/${job}`];
      return await Promise.all(
        names.map(async (name) => (await lease("acquire", { name, holder: "me" })).status),
      );
    };
    expect(await statuses("1")).toEqual([403, 200]);
    await write("b/*");
    await server.reload();
    expect(await statuses("2")).toEqual([200, 403]);
    await writeFile(policyFile, "{");
    await server.reload();
    expect(await statuses("3")).toEqual([200, 403]);
    const entries = await server.service.audit.query({ tenant: "solehold", key: "server" });
    expect(entries.map(({ action }) => action)).toEqual(["start", "reload"]);
    expect(entries[0]?.detail?.policy).not.toBe(entries[1]?.detail?.policy);
  });
});
