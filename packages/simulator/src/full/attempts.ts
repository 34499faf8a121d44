/** What a service was asked for and what it answered, by the traces of the attempts, to be compared with the audit. */
import type { CallContext, CommandOutcome, LeaseService, ServiceReply } from "solehold/internal";

/** One attempt as its caller saw it end. */
export interface AnsweredAttempt {
  readonly traceId: string;
  readonly outcome: CommandOutcome;
}

export class Attempts {
  readonly answered: AnsweredAttempt[] = [];
  /** How many were begun under each trace. */
  readonly begun = new Map<string, number>();

  begin(traceId: string): void {
    this.begun.set(traceId, (this.begun.get(traceId) ?? 0) + 1);
  }

  end(traceId: string, outcome: CommandOutcome): void {
    this.answered.push({ traceId, outcome });
  }

  /** The service, with all its commands passing here. */
  watched(service: LeaseService): LeaseService {
    return new Proxy(service, {
      get: (inner, field) => {
        const member: unknown = Reflect.get(inner, field, inner);
        if (typeof member !== "function") return member;
        return (...given: readonly unknown[]): unknown => {
          for (const traceId of tracesIn(given)) this.begin(traceId);
          const result: unknown = Reflect.apply(member, inner, given);
          if (result instanceof Promise)
            result.then(
              (replies: unknown) => {
                for (const reply of [replies].flat())
                  if (isReply(reply)) this.end(reply.entry.traceId, reply.outcome);
              },
              () => undefined,
            );
          return result;
        };
      },
    });
  }
}

/** The contexts of a command are arguments of its own, or parts of them. */
function tracesIn(given: readonly unknown[]): readonly string[] {
  return given.flatMap((each) => {
    if (typeof each !== "object" || each === null) return [];
    const { traceId } = ("context" in each ? each.context : each) as CallContext;
    return traceId === undefined ? [] : [traceId];
  });
}

function isReply(value: unknown): value is ServiceReply {
  return typeof value === "object" && value !== null && "entry" in value && "outcome" in value;
}
