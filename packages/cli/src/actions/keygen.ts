/** A signer's key pair. The private key goes to a file and nowhere else. */
import { exportPrivateKeyPem, generateSigningKey } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { requiredOption } from "../parse/option-values.ts";
import { writePrivateKey } from "./approvals/files.ts";

export async function keygen(invocation: Invocation): Promise<number> {
  const file = requiredOption(invocation, "out", "name the file for the private key, as in --out alice.pem");
  const { privateKey, publicKey } = generateSigningKey();
  await writePrivateKey(file, exportPrivateKeyPem(privateKey));
  const entry = { signerId: invocation.values.signer ?? "me", keys: [{ publicKey }] };
  printAnswer(invocation, {
    document: () => ({ file, publicKey, signer: entry }),
    lines: () => [
      `the private key is in ${file}: keep it, and keep it secret`,
      `public key  ${publicKey}`,
      "entry for the signers of the policy file:",
      JSON.stringify(entry),
    ],
  });
  return EXIT.ok;
}
