/** A connection of `pg` that listens to one channel until it breaks or is closed. */
import type { Env } from "../../env/index.ts";
import { withDeadline } from "./calls.ts";
import type { PgConnection } from "./clients.ts";
import { type Row, type SessionHandlers, type SqlSession, textsOf } from "./driver.ts";
import { storeErrorFrom, timeoutError } from "./failures.ts";

/** A connection, and how to be rid of it. */
export interface SessionConnection {
  readonly connection: PgConnection;
  end(): Promise<void>;
}

export interface PgSessionOptions {
  readonly channel: string;
  readonly handlers: SessionHandlers;
  readonly env: Env;
  readonly timeoutMs: number;
  readonly place: string;
  connectSession(): Promise<SessionConnection>;
}

export class PgSession implements SqlSession {
  readonly #options: PgSessionOptions;
  readonly #session: SessionConnection;
  #state: "open" | "ended" = "open";

  private constructor(options: PgSessionOptions, session: SessionConnection) {
    this.#options = options;
    this.#session = session;
    const { connection } = session;
    connection.on("notification", ({ channel, payload }) => {
      if (this.#state === "open" && channel === options.channel) options.handlers.onPayload(payload ?? "");
    });
    connection.on("error", () => this.#lost());
    connection.on("end", () => this.#lost());
  }

  static async open(options: PgSessionOptions): Promise<PgSession> {
    const { env, place, timeoutMs } = options;
    const connected = await withDeadline(options.connectSession(), {
      env,
      timeoutMs,
      expired: () => timeoutError(place, timeoutMs, "not-applied"),
      late: (session) => void session.end(),
    }).catch((cause: unknown) => {
      throw storeErrorFrom(cause, "connecting", place);
    });
    const session = new PgSession(options, connected);
    try {
      await session.run(`listen "${options.channel}"`);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  async run(text: string): Promise<readonly Row[]> {
    const { env, place, timeoutMs } = this.#options;
    const call = this.#session.connection.query({ text, rowMode: "array" });
    const expired = (): Error => timeoutError(place, timeoutMs, "unknown");
    try {
      return (await withDeadline(call, { env, timeoutMs, expired })).rows.map(textsOf);
    } catch (cause) {
      throw storeErrorFrom(cause, "sent", place);
    }
  }

  async close(): Promise<void> {
    if (this.#state === "ended") return;
    this.#state = "ended";
    await this.#session.end();
  }

  #lost(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    void this.#session.end();
    this.#options.handlers.onLost();
  }
}
