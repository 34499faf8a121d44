/** Client certificates as a way in: without one of the authority nobody gets as far as a request. */
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { selfSignedCertificate } from "../support/certificate.ts";
import { keyedServer } from "../support/keys.ts";
import { tempFolder } from "../support/server.ts";

const openssl = async (...words: readonly string[]) => await promisify(execFile)("openssl", words);
const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

interface Client {
  readonly cert: string;
  readonly key: string;
}

async function authority(): Promise<{ readonly cert: string; issue(name: string): Promise<Client> }> {
  const folder = await tempFolder();
  const at = (name: string): string => join(folder, name);
  const ca = ["-keyout", at("ca.key"), "-out", at("ca.pem")];
  await openssl("req", "-x509", ...EC, "-days", "2", "-subj", "/CN=authority", ...ca);
  return {
    cert: at("ca.pem"),
    issue: async (name) => {
      const csr = ["-keyout", at(`${name}.key`), "-out", at(`${name}.csr`)];
      await openssl("req", ...EC, "-subj", `/CN=${name}`, ...csr);
      const by = ["-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial", "-days", "1"];
      await openssl("x509", "-req", "-in", at(`${name}.csr`), ...by, "-out", at(`${name}.pem`));
      return {
        cert: await readFile(at(`${name}.pem`), "utf8"),
        key: await readFile(at(`${name}.key`), "utf8"),
      };
    },
  };
}

it("a certificate lets in with the rights of its rule, and one that is not there or not known does not", async () => {
  const own = await selfSignedCertificate();
  const [good, other] = [await authority(), await authority()];
  const identities = join(await tempFolder(), "identities.json");
  const certificates = [{ certificate: "worker", tenants: ["mine"], actions: ["acquire", "read"] }];
  await writeFile(identities, JSON.stringify({ certificates }));
  const flags = { tlsCert: own.cert, tlsKey: own.key, tlsClientCa: good.cert, identities };
  const server = await keyedServer([{}], flags);
  const ca = await readFile(own.cert, "utf8");
  const status = (path: string, client: Partial<Client>, headers = {}): Promise<number | string> =>
    new Promise((resolve) => {
      const asked = request(`${server.url}${path}`, { ca, ...client, headers, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      asked.on("error", () => resolve("not spoken to"));
      asked.end();
    });
  const worker = await good.issue("worker");
  expect(await status("/v1/leases?tenant=mine", worker)).toBe(200);
  expect(await status("/v1/leases?tenant=theirs", worker)).toBe(403);
  expect(await status("/v1/leases?tenant=mine", await good.issue("stranger"))).toBe(403);
  expect(await status("/healthz", await other.issue("worker"))).toBe("not spoken to");
  expect(await status("/healthz", {})).toBe("not spoken to");
  const key = { authorization: `Bearer ${server.keys[0]}` };
  expect(await status("/v1/leases?tenant=theirs", worker, key)).toBe(200);
  expect(await status("/v1/leases?tenant=mine", worker, { authorization: "Bearer shk_wrong" })).toBe(401);
  const entries = await server.server.service.audit.query({ tenant: "theirs" });
  expect(entries).toMatchObject([{ caller: "certificate:worker", reason: "FORBIDDEN" }]);
});
