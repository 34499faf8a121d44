/** A certificate for loopback, made for one test. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { tempFolder } from "./server.ts";

export async function selfSignedCertificate(): Promise<{ readonly cert: string; readonly key: string }> {
  const folder = await tempFolder();
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  await promisify(execFile)("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
    ...["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
    ...["-keyout", key, "-out", cert],
  ]);
  return { cert, key };
}
