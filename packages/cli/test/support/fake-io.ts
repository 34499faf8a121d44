// The world of a command, in memory: what it wrote, and signals that a test sends.

import type { Io, Output } from "../../src/io.ts";
import { main } from "../../src/main.ts";

export interface Terminal {
  readonly columns: number;
  readonly rows?: number;
}

export class FakeOutput implements Output {
  text = "";
  readonly isTTY: boolean;
  readonly #columns: number | null;
  readonly #rows: number | null;

  constructor(terminal: Terminal | null = null) {
    this.isTTY = terminal !== null;
    this.#columns = terminal?.columns ?? null;
    this.#rows = terminal?.rows ?? null;
  }

  write(text: string): void {
    this.text += text;
  }

  columns(): number | null {
    return this.#columns;
  }

  rows(): number | null {
    return this.#rows;
  }
}

export class FakeIo implements Io {
  readonly stdout: FakeOutput;
  readonly stderr = new FakeOutput();
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What was asked, and what a person answers; null without a terminal. */
  readonly asked: string[] = [];
  readonly #answer: string | null;
  readonly #listeners = new Map<NodeJS.Signals, Set<(signal: NodeJS.Signals) => void>>();

  constructor(
    options: {
      env?: Record<string, string>;
      terminal?: Terminal | null;
      answer?: string;
    } = {},
  ) {
    this.env = options.env ?? {};
    this.#answer = options.answer ?? null;
    this.stdout = new FakeOutput(options.terminal ?? null);
  }

  async ask(question: string): Promise<string | null> {
    this.asked.push(question);
    return this.#answer;
  }

  onSignals(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void {
    for (const signal of signals) {
      const listeners = this.#listeners.get(signal) ?? new Set();
      listeners.add(listener);
      this.#listeners.set(signal, listeners);
    }
    return () => {
      for (const signal of signals) this.#listeners.get(signal)?.delete(listener);
    };
  }

  send(signal: NodeJS.Signals): void {
    for (const listener of this.#listeners.get(signal) ?? []) listener(signal);
  }
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in this process. */
export async function run(
  argv: readonly string[],
  options: ConstructorParameters<typeof FakeIo>[0] = {},
): Promise<Ran> {
  const io = new FakeIo(options);
  const code = await main(argv, io);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}
