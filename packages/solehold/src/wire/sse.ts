/** Server-sent events (`text/event-stream`): one event as text, and a parser for text cut anywhere. */
export interface SseEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

/** None of the three may have line breaks: JSON and tokens have none. An event without an id cannot be resumed after. */
export function encodeSse({ id, event, data }: Omit<SseEvent, "id"> & Partial<SseEvent>): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`;
}

export class SseParser {
  readonly #onEvent: (event: SseEvent) => void;
  #rest = "";
  #event = "message";
  #id = "";
  #data: string[] = [];

  constructor(onEvent: (event: SseEvent) => void) {
    this.#onEvent = onEvent;
  }

  push(chunk: string): void {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#readLine(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  #readLine(line: string): void {
    if (line === "") {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id") this.#id = value;
  }

  #dispatch(): void {
    if (this.#data.length > 0) {
      this.#onEvent({ event: this.#event, id: this.#id, data: this.#data.join("\n") });
    }
    this.#event = "message";
    this.#data = [];
  }
}
