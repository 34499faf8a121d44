/**
 * Heads of the audit as text: SEQUENCE:HASH, and with a signature SEQUENCE:HASH:SIGNATURE. A head that is kept where the
 * trail's machine can write needs the signature: without the private key nobody makes up another one that is believed.
 */
import { sign, verify } from "node:crypto";
import { type AuditHead, importPublicKey } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { errorFailure, usageFailure } from "../failure.ts";
import { readPrivateKey } from "./approvals/files.ts";

const HEAD = /^([1-9]\d{0,15}):([0-9a-f]{64})(?::([A-Za-z0-9_-]{86}))?$/;

export function headText({ sequence, hash }: AuditHead): string {
  return `${sequence}:${hash}`;
}

export async function signedHead(head: AuditHead, keyFile: string): Promise<string> {
  const { pair } = await readPrivateKey(keyFile);
  return `${headText(head)}:${sign(null, signedBytes(head), pair.privateKey).toString("base64url")}`;
}

/** The head that an option names; null without it. With --public-key it must be signed by that key. */
export function headOption({ values }: Invocation, name: "anchor" | "start-after"): AuditHead | null {
  const text = values[name];
  if (text === undefined) return null;
  const [, sequence, hash, signature] = HEAD.exec(text) ?? [];
  if (sequence === undefined || hash === undefined)
    throw usageFailure(
      `--${name} must be SEQUENCE:HASH as 'audit head' prints it, got ${JSON.stringify(text)}`,
    );
  const head = { sequence: Number(sequence), hash };
  const publicKey = values["public-key"];
  if (publicKey !== undefined) assertSigned(`--${name}`, head, signature, publicKey);
  else if (signature !== undefined)
    throw usageFailure(`--${name} is signed: give --public-key of its signer`);
  return head;
}

function assertSigned(option: string, head: AuditHead, signature: string | undefined, key: string): void {
  if (signature === undefined) throw usageFailure(`${option} is not signed, and --public-key asks for that`);
  if (verify(null, signedBytes(head), importPublicKey(key), Buffer.from(signature, "base64url"))) return;
  throw errorFailure("HEAD_NOT_SIGNED", `${option} was not signed by the owner of --public-key`);
}

/** Says what it is, so that no signature for something else fits. */
function signedBytes(head: AuditHead): Buffer {
  return Buffer.from(`solehold-audit-head-v1:${headText(head)}`);
}
