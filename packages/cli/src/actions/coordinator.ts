/** Which node is a key's home. The same answer on every machine. */
import {
  type CoordinatorCandidate,
  DEFAULT_ALGORITHM,
  randomId,
  rankCoordinators,
  realEnv,
  SELECTION_ALGORITHMS,
  type SelectionRefusal,
} from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT, Failure, usageFailure } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { requiredOption } from "../parse/option-values.ts";

export async function coordinator(invocation: Invocation): Promise<number> {
  const { values, positionals, flags } = invocation;
  const fix = "name the nodes with their weights, as in --nodes a=10,b=5";
  const nodes = requiredOption(invocation, "nodes", fix);
  const ranking = rankCoordinators({
    candidates: nodes.split(",").map(candidateOf),
    leaseId: positionals[1] ?? "",
    traceId: values["trace-id"] ?? randomId(realEnv),
    algorithm: SELECTION_ALGORITHMS.find((known) => known === values.algorithm) ?? DEFAULT_ALGORITHM,
  });
  if (!ranking.ok) throw failureOf(ranking);
  const { ranked, candidates, algorithm, leaseId, traceId } = ranking;
  const selected = ranked[0] ?? "";
  printAnswer(invocation, {
    document: () => ({
      leaseId,
      selected,
      ...(flags.has("all") ? { ranked } : {}),
      candidates: candidates.map(({ nodeId, weight }) => ({ nodeId, weight: weight.toString() })),
      algorithm,
      traceId,
    }),
    lines: () => (flags.has("all") ? ranked : [selected]),
  });
  return EXIT.ok;
}

/** The last = divides: a node's name may contain one. */
function candidateOf(text: string): CoordinatorCandidate {
  const divider = text.lastIndexOf("=");
  const weight = text.slice(divider + 1);
  if (divider < 1 || !/^\d{1,20}$/.test(weight)) {
    throw usageFailure(`--nodes must be NAME=WEIGHT,..., with whole weights; got ${JSON.stringify(text)}`);
  }
  return { nodeId: text.slice(0, divider), weight: BigInt(weight) };
}

function failureOf({ code, field, message }: SelectionRefusal): Failure {
  const exitCode = code === "LC_NO_CANDIDATES" ? EXIT.error : EXIT.usage;
  return new Failure(`${field} ${message} (${code})`, { exitCode, code, facts: { field } });
}
