/** `solehold keygen`: a signer's key pair. The private key goes to a file and nowhere else. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "keygen",
  summary: "Make a key pair for a signer of approvals",
  usage: "--out FILE [options]",
  positionals: [],
  trailing: "none",
  options: {
    out: { type: "value", placeholder: "FILE", help: "where the private key goes; it is never overwritten" },
    signer: {
      type: "value",
      placeholder: "NAME",
      help: "the signer's id in the printed entry (default 'me')",
    },
    ...COMMON_OPTIONS,
  },
  examples: [
    {
      line: "solehold keygen --out alice.pem --signer alice",
      what: "the public half goes into the policy file",
    },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { requiredOption } = await import("../values.ts");
  const { writePrivateKey } = await import("../approvals/files.ts");
  const { exportPrivateKeyPem, generateSigningKey } = await import("solehold/internal");
  const { printAnswer } = await import("../text/print.ts");
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
  return 0;
}
