/** What a service was asked for and what it answered, by the traces of the attempts, to be compared with the audit. */
import {
  type CallContext,
  type CommandOutcome,
  keyId,
  type Layer,
  type LeaseExecutor,
  type LeaseKey,
  layerOver,
} from "solehold/internal";
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

  #begin(traceId: string): void {
    this.begun.set(traceId, (this.begun.get(traceId) ?? 0) + 1);
  }

  #end(traceId: string, outcome: CommandOutcome, key: LeaseKey): void {
    this.answered.push({ traceId, outcome, keyId: keyId(key) });
  }

  /** The service, with all its commands passing here. */
  watched<Service extends LeaseExecutor>(service: Service): Service {
    const members: Partial<LeaseExecutor> = {
      execute: async (request, context = {}) => {
        const { traceId = "" } = context;
        const next = request.op === "release" ? request.next : undefined;
        const nextTraceId = next?.context.traceId ?? "";
        this.#begin(traceId);
        if (next !== undefined) this.#begin(nextTraceId);
        const outcome = await service.execute(request, context);
        this.#end(traceId, outcome, request.key);
        const served = outcome.kind === "refused" ? undefined : outcome.next;
        if (served !== undefined) this.#end(nextTraceId, served, request.key);
        return outcome;
      },
    };
    return withMembers(service, members as Partial<Service>);
  }

  /** A layer over the service: every command gets a trace of its own, and its outcome is kept under it. */
  traced(process: string): Layer {
    let count = 0;
    const traced = (context: CallContext): CallContext => {
      count += 1;
      return { ...context, traceId: `${process}-${count}` };
    };
    return (next) => {
      const watched = this.watched(next);
      return layerOver(next, {
        execute: async (request, context = {}) => {
          if (request.op !== "release" || request.next === undefined)
            return await watched.execute(request, traced(context));
          const served = { ...request.next, context: traced(request.next.context) };
          return await watched.execute({ ...request, next: served }, traced(context));
        },
      });
    };
  }
}
