/** The proof of the chain: that it holds, or which entry is the first that is not proven. */
import { Banner } from "../../ui/components.tsx";
import type { Answered } from "../../ui/use-answer.ts";
import { messageOf } from "../data/api.ts";
import { grouped } from "../format.ts";
import { setParams } from "../router.ts";

export type Proof =
  | { readonly ok: true; readonly entries: number; readonly head: { readonly sequence: number } }
  | { readonly ok: false; readonly entry: number; readonly message: string };

export type VerifyProps = Answered<Proof> & { readonly mayVerify: boolean; readonly run: () => void };

export function Verify({ answer: proof, error, isBusy, run, mayVerify }: VerifyProps) {
  const tone = error !== null || proof?.ok === false ? "bad" : proof?.ok === true ? "good" : "accent";
  return (
    <Banner tone={tone}>
      <button type="button" class="button" onClick={() => run()} disabled={isBusy || !mayVerify}>
        {isBusy ? "Verifying…" : "Verify chain"}
      </button>
      <span>{error === null ? proofInWords(proof, mayVerify) : messageOf(error)}</span>
      {error === null && proof?.ok === false && (
        <button type="button" class="button" onClick={() => setParams({ entry: String(proof.entry) })}>
          Show entry {proof.entry}
        </button>
      )}
    </Banner>
  );
}

function proofInWords(proof: Proof | null, mayVerify: boolean): string {
  if (!mayVerify) return "To prove the chain takes a key that allows 'audit' in all tenants.";
  if (proof === null) return "Proves that no entry was changed, dropped, inserted or moved.";
  return proof.ok
    ? `All ${grouped(proof.entries)} entries are proven; the last is ${proof.head.sequence}.`
    : `Entry ${proof.entry} is not proven: ${proof.message}.`;
}
