/**
 * Entries for what is no command on a lease: refusals by authentication and scope, changes of API keys, and which policy
 * a process started with. Those that concern no tenant stand under the server's own.
 *
 * A refusal by scope has its entry before its answer, as a denial has. Refusals by authentication need no key, so an
 * attacker could fill the disk and the event loop with them: a few a second have an entry each, the next entry counts those
 * without, and those without are answered later.
 */
import {
  type AuditDetail,
  type AuditEvent,
  delay,
  type Env,
  encodeProblem,
  type LeaseService,
  type ProblemInput,
} from "solehold/internal";
import type { Logger } from "../telemetry/log.ts";
import type { KeyChange } from "./authenticator.ts";
import type { Call } from "./call.ts";
import type { StoredKey } from "./key-file.ts";
import { SYSTEM_TENANT } from "./principal.ts";
import { RateLimiter } from "./rate-limit.ts";
import { AccessDeniedError, NotAuthenticatedError } from "./refusals.ts";

export type Origin = Pick<Call, "traceId" | "address">;

export interface AccessAuditOptions {
  readonly env: Env;
  readonly service: LeaseService;
  readonly log: Logger;
}

const UNAUTHENTICATED_PER_SECOND = 10;
/** How much later the others are answered: whoever asks again and again does so at this pace. */
const LATER_MS = 250;
/** And not all of them at once. */
const APART_MS = 8;
const PLACES = 32;
const ALLOWED = { allowed: true, reason: "OK_DECISION_COMPUTE", reasonCode: 0x4c530002 } as const;

export class AccessAudit {
  readonly #options: AccessAuditOptions;
  readonly #limiter: RateLimiter;
  /** Refusals since the last entry that have none. */
  #omitted = 0;

  constructor(options: AccessAuditOptions) {
    this.#options = options;
    this.#limiter = new RateLimiter(options.env, UNAUTHENTICATED_PER_SECOND);
  }

  /** For every error that ends a request, before its answer. Rejects when a refusal by scope cannot be recorded. */
  async refused(error: unknown, call: Origin & Partial<Pick<Call, "principal">>): Promise<void> {
    if (error instanceof AccessDeniedError) {
      const { action, tenant, subject: key, input } = error;
      const by = call.principal === undefined ? {} : { caller: call.principal.id };
      await this.#record(action, input, call, { tenant, key, ...by });
    } else if (error instanceof NotAuthenticatedError) {
      await this.#notAuthenticated(error, call);
    }
  }

  keyChanged(change: KeyChange, { id, name, tenants, prefixes, actions, expiresAt }: StoredKey): void {
    const rights = { tenants: tenants.join(" "), prefixes: prefixes.join(" "), actions: actions.join(" ") };
    const detail = { name, ...rights, ...(expiresAt === undefined ? {} : { expiresAt }) };
    this.#inBackground(this.#own(`key-${change}`, `api-keys/${id}`, detail));
    if (change !== "known") this.#options.log.info({ id, name }, `API key: ${change}`);
  }

  /** `action`: start, stop or reload. */
  async process(action: string, detail: AuditDetail): Promise<void> {
    const { service } = this.#options;
    await service.record(this.#own(action, "server", detail));
  }

  async #notAuthenticated({ input, claimedId }: NotAuthenticatedError, call: Origin): Promise<void> {
    const { env, log } = this.#options;
    try {
      this.#limiter.take("", 1, env.monotonicMs());
    } catch {
      this.#omitted += 1;
      return await delay(env, LATER_MS + APART_MS * (this.#omitted % PLACES));
    }
    const detail = {
      ...(claimedId === null ? {} : { claimedId }),
      ...(this.#omitted === 0 ? {} : { omitted: this.#omitted }),
    };
    this.#omitted = 0;
    log.warn({ address: call.address, reason: input.reason, ...detail }, "a caller was not let in");
    const where = { tenant: SYSTEM_TENANT, key: "", ...(Object.keys(detail).length === 0 ? {} : { detail }) };
    this.#record("authenticate", input, call, where).catch((error) => this.#onFailed(error));
  }

  async #record(
    action: string,
    input: ProblemInput,
    { traceId, address }: Origin,
    about: Pick<AuditEvent, "tenant" | "key" | "caller" | "detail">,
  ): Promise<void> {
    const { service } = this.#options;
    const { reason, reasonCode } = encodeProblem(input, traceId).body;
    await service.record({
      at: service.executor.storeNowMs(),
      leaseId: "",
      action: action === "acquire" ? "grant" : action,
      ...{ allowed: false, reason, reasonCode, traceId, outcome: "none" },
      ...(address === "" ? {} : { address }),
      ...about,
    });
  }

  #own(action: string, key: string, detail: AuditDetail): AuditEvent {
    const at = this.#options.service.executor.storeNowMs();
    return {
      at,
      tenant: SYSTEM_TENANT,
      key,
      leaseId: "",
      action,
      ...ALLOWED,
      traceId: "",
      outcome: "none",
      detail,
    };
  }

  #inBackground(event: AuditEvent): void {
    this.#options.service.record(event).catch((error) => this.#onFailed(error));
  }

  #onFailed(error: unknown): void {
    this.#options.log.error({ err: error }, "an entry about access could not be written to the audit");
  }
}
