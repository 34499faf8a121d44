/**
 * Plain HTTP to a simulated server, as the SDK's transport: a request leg, the server's real handlers, a
 * reply leg, each faulted on its own. Silence ends by the request's own timeout, as with real sockets.
 * Following events (`/v1/watch`) is not simulated: no client of a server needs it to hold or wait.
 */
import {
  type RemoteAnswer,
  type RemoteRequest,
  type RemoteTransport,
  StoreError,
  transportError,
} from "solehold/internal";
import type { SimulatedEnv } from "../world/env.ts";
import type { HttpAnswerText } from "./gateway.ts";
import type { ServerAddress, Wire } from "./server-address.ts";

export interface HttpLinkOptions {
  readonly wire: Wire;
  readonly env: SimulatedEnv;
  readonly server: ServerAddress;
}

export class HttpLink implements RemoteTransport {
  readonly #options: HttpLinkOptions;

  constructor(options: HttpLinkOptions) {
    this.#options = options;
  }

  send(request: RemoteRequest): Promise<RemoteAnswer> {
    const { env, server } = this.#options;
    return new Promise((resolve, reject) => {
      const hangUps: (() => void)[] = [];
      let settled = false;
      const settle = (act: () => void): void => {
        if (settled || env.dead) return;
        settled = true;
        timer.cancel();
        request.signal?.removeEventListener("abort", onAbort);
        act();
      };
      const fail = (error: unknown): void => settle(() => reject(transportError(error, server.url)));
      const giveUp = (error: StoreError): void =>
        settle(() => {
          this.#carry("up", "hang up", () => {
            for (const hangUp of hangUps) hangUp();
          });
          reject(error);
        });
      const onAbort = (): void =>
        giveUp(new StoreError("closed", "the caller gave up", { outcome: "unknown" }));
      const timer = env.timer(request.timeoutMs, () =>
        giveUp(new StoreError("timeout", `${server.url} gave no answer in time`, { outcome: "unknown" })),
      );
      request.signal?.addEventListener("abort", onAbort, { once: true });
      this.#request(request, {
        hangUps,
        answered: ({ status, body }) => settle(() => resolve({ status, body: parsed(body) })),
        failed: fail,
      });
    });
  }

  async events(): Promise<{ close(): void }> {
    throw new StoreError("unreachable", "events are not simulated", { outcome: "not-applied" });
  }

  close(): void {
    // Requests under way end by their own timeouts.
  }

  #request({ method, path, body }: RemoteRequest, exchange: Exchange): void {
    const { server } = this.#options;
    const text = body === undefined ? null : JSON.stringify(body);
    const { hangUps, answered, failed } = exchange;
    this.#carry(
      "up",
      "request",
      () => {
        const serving = server.serving();
        if (serving === null) {
          this.#carry("down", "refusal", () => failed(REFUSED), failed);
          return;
        }
        const { endpoint, env } = serving;
        const handled = endpoint.handle({ method, path, body: text }, (given) => {
          if (!env.dead) this.#carry("down", "answer", () => answered(given), failed);
        });
        hangUps.push(() => {
          if (!env.dead) handled.hangUp();
        });
      },
      failed,
    );
  }

  #carry(way: "up" | "down", label: string, deliver: () => void, onNoticed?: (error: unknown) => void): void {
    const { wire, env, server } = this.#options;
    const [from, to] = way === "up" ? [env.machine, server.machine] : [server.machine, env.machine];
    if (wire.network.send(from, to, label, deliver) === "sent" || onNoticed === undefined) return;
    // A broken connection is sometimes noticed, and sometimes there is only silence.
    const random = wire.world.choices.stream("broken requests");
    if (!random.chance(0.5)) return;
    const atMs = wire.world.nowMs + random.fraction() * wire.noticeMs;
    wire.world.schedule(atMs, env.machine, "connection error", () => {
      if (!env.dead) onNoticed(new Error("the connection broke"));
    });
  }
}

interface Exchange {
  readonly hangUps: (() => void)[];
  answered(given: HttpAnswerText): void;
  failed(error: unknown): void;
}

const REFUSED = Object.assign(new Error("nobody listens"), { code: "ECONNREFUSED" });

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
