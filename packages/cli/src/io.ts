/**
 * The world as a command sees it: where it writes, its environment, the signals sent to it. A test passes
 * its own.
 *
 * Output goes through synchronous writes on the descriptors, never through `process.stdout`: Node would
 * switch a pipe to non-blocking mode, and `run` shares its pipes with a child that does not expect that.
 */
import { writeSync } from "node:fs";
import { isatty } from "node:tty";

export interface Output {
  write(text: string): void;
  readonly isTTY: boolean;
  /** The width of the terminal; null when it is none. */
  columns(): number | null;
  /** Its height; null when it is none. */
  rows(): number | null;
}

export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The line that a person types after the question; null when there is no terminal. */
  ask(question: string): Promise<string | null>;
  /** Calls back for each of the signals, in place of what they would do. Returns how to stop that. */
  onSignals(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void;
}

/** The reader of the output has gone: `solehold ls | head -1`. */
export class OutputClosedError extends Error {
  override readonly name = "OutputClosedError";
}

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
/** A full pipe that another program made non-blocking is tried again after this. */
const RETRY_MS = 5;

class DescriptorOutput implements Output {
  readonly isTTY: boolean;
  readonly #descriptor: number;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    this.isTTY = isatty(descriptor);
  }

  write(text: string): void {
    const bytes = Buffer.from(text, "utf8");
    let offset = 0;
    while (offset < bytes.length) offset += this.#writeSome(bytes.subarray(offset));
  }

  columns(): number | null {
    return this.isTTY ? (process.stdout.columns ?? null) : null;
  }

  rows(): number | null {
    return this.isTTY ? (process.stdout.rows ?? null) : null;
  }

  #writeSome(bytes: Uint8Array): number {
    try {
      return writeSync(this.#descriptor, bytes);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPIPE") throw new OutputClosedError("the output was closed");
      if (code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      return 0;
    }
  }
}

async function askOnTerminal(question: string): Promise<string | null> {
  if (!isatty(STDIN) || !isatty(STDERR)) return null;
  const { createInterface } = await import("node:readline/promises");
  // The question goes to stderr: stdout may be a file that the answer is written to.
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await terminal.question(question);
  } finally {
    terminal.close();
  }
}

export function processIo(): Io {
  return {
    stdout: new DescriptorOutput(STDOUT),
    stderr: new DescriptorOutput(STDERR),
    env: process.env,
    ask: askOnTerminal,
    onSignals: (signals, listener) => {
      for (const signal of signals) process.on(signal, listener);
      return () => {
        for (const signal of signals) process.off(signal, listener);
      };
    },
  };
}
