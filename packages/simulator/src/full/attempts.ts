/** What a service was asked for and what it answered, by the traces of the attempts, to be compared with the audit. */
import { type CommandOutcome, keyId, type LeaseExecutor, type LeaseKey } from "solehold/internal";
import { withMembers } from "../bugs/wrap.ts";

/** One attempt as its caller saw it end. */
export interface AnsweredAttempt {
  readonly traceId: string;
  readonly outcome: CommandOutcome;
  readonly keyId: string;
}

export class Attempts {
  readonly answered: AnsweredAttempt[] = [];
  /** How many were begun under each trace. */
  readonly begun = new Map<string, number>();

  begin(traceId: string): void {
    this.begun.set(traceId, (this.begun.get(traceId) ?? 0) + 1);
  }

  end(traceId: string, outcome: CommandOutcome, key: LeaseKey): void {
    this.answered.push({ traceId, outcome, keyId: keyId(key) });
  }

  /** The service, with all its commands passing here. */
  watched<Service extends LeaseExecutor>(service: Service): Service {
    const members: Partial<LeaseExecutor> = {
      execute: async (request, context = {}) => {
        const { traceId = "" } = context;
        const next = request.op === "release" ? request.next : undefined;
        const nextTraceId = next?.context.traceId ?? "";
        this.begin(traceId);
        if (next !== undefined) this.begin(nextTraceId);
        const outcome = await service.execute(request, context);
        this.end(traceId, outcome, request.key);
        const served = outcome.kind === "refused" ? undefined : outcome.next;
        if (served !== undefined) this.end(nextTraceId, served, request.key);
        return outcome;
      },
    };
    return withMembers(service, members as Partial<Service>);
  }
}
