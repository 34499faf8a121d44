/** TLS by the URL's ssl-mode, on a server that takes nothing else. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openMysqlStore } from "../../../src/stores/mysql/index.ts";
import { type Engine, startMariadb } from "../../engines/index.ts";
import { create, recordOf, rejection } from "../records.ts";

const folder = mkdtempSync(join(tmpdir(), "solehold-mysql-tls-"));
let server: Engine;

beforeAll(async () => {
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  await promisify(execFile)("openssl", [
    ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"],
    ...["-keyout", key, "-out", cert],
  ]);
  server = await startMariadb({
    settings: [`ssl-cert=${cert}`, `ssl-key=${key}`, "require-secure-transport=ON"],
  });
});

afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it("works encrypted, and refuses a certificate that nobody vouches for when it is to be verified", async () => {
  const store = await openMysqlStore({ url: `${server.url}?ssl-mode=REQUIRED` });
  await create(store, recordOf("secret"));
  await store.close();
  for (const mode of ["VERIFY_CA", "VERIFY_IDENTITY"]) {
    const error = await rejection(openMysqlStore({ url: `${server.url}?ssl-mode=${mode}` }));
    expect(error).toMatchObject({ name: "StoreError", kind: "unreachable", outcome: "not-applied" });
    expect(error.message).toMatch(/self-signed certificate/);
  }
});

it("says what is wrong without TLS", async () => {
  const error = await rejection(openMysqlStore({ url: server.url }));
  expect(error).toMatchObject({ name: "StoreError", outcome: "not-applied" });
  expect(error.message).toMatch(/a server that wants TLS needs ssl-mode/);
});
