/**
 * Server-sent events by fetch, because EventSource cannot send an API key. A stream that ends is opened again, sooner at
 * first and later after several failures, until it is closed.
 */
import { type SseEvent, SseParser } from "solehold/browser";
import { authorization, ProblemError, problemIn } from "./api.ts";

export type StreamState = "connecting" | "open" | "reconnecting";

export interface StreamOptions {
  /** Asked at each attempt: it may name where to resume. */
  url(): string;
  onEvent(event: SseEvent): void;
  onState(state: StreamState): void;
  /** The server answered no: there is nothing to wait for. */
  onRefused(error: ProblemError): void;
}

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5_000;
/** The server sends something every 15 seconds; a connection that is silent for longer is dead. */
const SILENCE_MS = 40_000;

/** Returns how to close it. */
export function openStream(options: StreamOptions): () => void {
  const closed = new AbortController();
  const run = async (): Promise<void> => {
    let pauseMs = FIRST_PAUSE_MS;
    options.onState("connecting");
    while (!closed.signal.aborted) {
      try {
        await readOnce(options, closed.signal, () => {
          pauseMs = FIRST_PAUSE_MS;
          options.onState("open");
        });
      } catch (error) {
        if (error instanceof ProblemError && error.problem.status < 500 && error.problem.status !== 429) {
          if (!closed.signal.aborted) options.onRefused(error);
          return;
        }
      }
      if (closed.signal.aborted) return;
      options.onState("reconnecting");
      await pause(pauseMs * (0.75 + Math.random() / 2), closed.signal);
      pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
    }
  };
  void run();
  return () => closed.abort();
}

async function readOnce(options: StreamOptions, signal: AbortSignal, onOpen: () => void): Promise<void> {
  const silence = new AbortController();
  const either = AbortSignal.any([signal, silence.signal]);
  const headers = { ...authorization(), accept: "text/event-stream" };
  const response = await fetch(options.url(), {
    headers,
    cache: "no-store",
    credentials: "omit",
    signal: either,
  });
  if (!response.ok || response.body === null) throw await problemIn(response);
  onOpen();
  const parser = new SseParser((event) => {
    if (!signal.aborted) options.onEvent(event);
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    parser.push(value);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
