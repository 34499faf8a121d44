/**
 * One statement on a connection of the store's own pool, in as few messages as the protocol allows. `pg`
 * hands it the server's messages, as it does with its own queries.
 *
 * It ends exactly once: with the rows, or with the error, whatever comes afterwards.
 */
import type { PgSubmittable, PgWire } from "./clients.ts";
import type { Row, Values } from "./driver.ts";
import { boundStatement, boundText } from "./pg-wire.ts";
import type { Statement } from "./statements.ts";

export type QueryEnd = (error: Error | null, rows: readonly Row[]) => void;

const NO_COLUMNS: Row = [];

export class PgQuery implements PgSubmittable {
  /** Both are read by `pg`: it remembers which statements a connection has parsed. */
  readonly name: string;
  readonly text: string;
  /** Called once; `pg` and what observes it may put something around it. */
  callback: QueryEnd;
  readonly #answer: Statement["answer"];
  readonly #values: Values;
  readonly #rows: Row[] = [];
  #behind: PgQuery | null = null;
  #state: "new" | "sent" | "ended" = "new";

  /** Without a name the statement is parsed each time. */
  constructor({ name, text, answer }: Statement, values: Values, callback: QueryEnd) {
    this.name = name;
    this.text = text;
    this.#answer = answer;
    this.callback = callback;
    this.#values = values;
  }

  /** Another one that leaves together with this one. It must be the next that the connection is given. */
  followedBy(next: PgQuery): void {
    this.#behind = next;
  }

  submit(wire: PgWire): null {
    if (this.#state !== "new") return null;
    if (this.#behind === null) this.#send(wire);
    else this.#sendBoth(wire, this.#behind);
    return null;
  }

  #sendBoth(wire: PgWire, next: PgQuery): void {
    const own = this.#plainMessage(wire);
    const other = next.#plainMessage(wire);
    if (own !== null && other !== null) {
      this.#state = "sent";
      next.#state = "sent";
      if (wire.stream.writable) wire.stream.write(own + other, "latin1");
      return;
    }
    wire.stream.cork();
    this.#send(wire);
    next.#send(wire);
    wire.stream.uncork();
  }

  /** All that has to be sent, if the statement was parsed before and its values are plain. */
  #plainMessage(wire: PgWire): string | null {
    return this.#isParsed(wire) ? boundText(this.name, this.#values) : null;
  }

  #send(wire: PgWire): void {
    const { name, text } = this;
    this.#state = "sent";
    if (!this.#isParsed(wire)) wire.parse({ name, text });
    // A stream that is closed already ends this query by itself.
    if (!wire.stream.writable) return;
    const message = boundText(name, this.#values);
    if (message === null) wire.stream.write(boundStatement(name, this.#values));
    else wire.stream.write(message, "latin1");
  }

  #isParsed(wire: PgWire): boolean {
    return this.name !== "" && wire.parsedStatements[this.name] !== undefined;
  }

  handleDataRow({ fields }: { readonly fields: Row }): void {
    this.#rows.push(fields);
  }

  handleError(error: Error): void {
    this.#end(error, []);
  }

  handleReadyForQuery(): void {
    this.#end(null, this.#rows);
  }

  /** `INSERT 0 1` or `UPDATE 1`: the last number is that of the rows. */
  handleCommandComplete({ text }: { readonly text: string }): void {
    if (this.#answer !== "counted") return;
    for (let rows = Number(text.slice(text.lastIndexOf(" ") + 1)); rows > 0; rows -= 1)
      this.#rows.push(NO_COLUMNS);
  }

  /** What else the server says needs no answer. */
  handleRowDescription(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}

  #end(error: Error | null, rows: readonly Row[]): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.callback(error, rows);
  }
}
