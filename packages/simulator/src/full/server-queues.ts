/**
 * First come, first served, at a server: of two requests to wait for a key, the one that arrived there earlier is
 * granted earlier. Watched long after healing, when no lease is being handed on (its successor goes first) and no
 * request is lost on its way. A request that was sent more than once has no place of its own to judge by.
 */
import { hashToken, keyId, type LeaseKey, type LeaseRecord } from "solehold/internal";
import type { Endpoint } from "../net/gateway.ts";

interface Arrival {
  readonly server: string;
  readonly keyId: string;
  readonly tokenHash: string;
}

interface WaitBody {
  readonly op?: string;
  readonly tenant?: string;
  readonly name?: string;
  readonly token?: string;
  readonly waitMs?: number;
}

const ACQUIRE_PATH = "/v1/leases/acquire";

export class ServerQueues {
  #isWatching = false;
  readonly #watched = new Set<string>();
  readonly #arrivals: Arrival[] = [];
  /** Tokens in the order of their grants. */
  readonly #granted: string[] = [];

  /** Watches these keys, which nobody is handing on. */
  begin(keys: readonly LeaseKey[]): void {
    this.#isWatching = true;
    for (const key of keys) this.#watched.add(keyId(key));
  }

  /** The same endpoint, with an eye on who arrives. */
  watched(server: string, endpoint: Endpoint): Endpoint {
    return {
      handle: (request, answer) => {
        if (request.path === ACQUIRE_PATH && request.body !== null) this.#onText(server, request.body);
        return endpoint.handle(request, answer);
      },
      accept: (socket) => {
        socket.on("message", (data: Buffer) => this.#onText(server, data.toString()));
        endpoint.accept(socket);
      },
      close: () => endpoint.close(),
    };
  }

  onGrant({ tokenHash }: LeaseRecord): void {
    if (this.#isWatching) this.#granted.push(tokenHash);
  }

  /** Somebody who came later and was served earlier; null when all was in order. */
  disorder(): string | null {
    const counts = new Map<string, number>();
    for (const { tokenHash } of this.#arrivals) counts.set(tokenHash, (counts.get(tokenHash) ?? 0) + 1);
    const place = (arrival: Arrival): number => this.#granted.indexOf(arrival.tokenHash);
    const lastPlace = new Map<string, number>();
    for (const arrival of this.#arrivals) {
      if (!this.#watched.has(arrival.keyId)) continue;
      if (counts.get(arrival.tokenHash) !== 1 || place(arrival) < 0) continue;
      const queue = `${arrival.server} ${arrival.keyId}`;
      if (place(arrival) < (lastPlace.get(queue) ?? -1))
        return `${arrival.server} granted ${arrival.keyId} to a waiter before one that had come earlier`;
      lastPlace.set(queue, place(arrival));
    }
    return null;
  }

  #onText(server: string, text: string): void {
    if (!this.#isWatching) return;
    const parsed: unknown = JSON.parse(text);
    for (const each of (Array.isArray(parsed) ? parsed : [parsed]) as readonly WaitBody[]) {
      const { op = "acquire", tenant, name, token, waitMs = 0 } = each;
      if (op !== "acquire" || waitMs === 0) continue;
      if (tenant === undefined || name === undefined || token === undefined) continue;
      this.#arrivals.push({ server, keyId: keyId({ tenant, name }), tokenHash: hashToken(token) });
    }
  }
}
