/** The page's side of the worker. */
import type { Trace } from "@solehold/simulator";
import type { Played } from "./play.ts";
import type { Answer, Envelope, Explored, Question, Reply } from "./protocol.ts";

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

const waiting = new Map<number, Waiting>();
let worker: Worker | null = null;
let asked = 0;

function theWorker(): Worker {
  if (worker !== null) return worker;
  worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  worker.addEventListener("message", ({ data }: MessageEvent<Reply>) => {
    const asker = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.content.kind === "failed") asker?.reject(new Error(data.content.message));
    else asker?.resolve(data.content);
  });
  worker.addEventListener("error", ({ message }) => {
    for (const { reject } of waiting.values()) reject(new Error(`the worker failed: ${message}`));
    waiting.clear();
  });
  return worker;
}

function ask(content: Question): Promise<Answer> {
  asked += 1;
  const id = asked;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    theWorker().postMessage({ id, content } satisfies Envelope<Question>);
  });
}

export async function playInWorker(world: Played, title: string, bug: string | null): Promise<Trace> {
  const answer = await ask({ kind: "play", world, title, bug });
  if (answer.kind !== "play") throw new Error("the worker answered another question");
  return answer.trace;
}

export async function exploreInWorker(bug: string, code: "shipped" | "broken"): Promise<Explored> {
  const answer = await ask({ kind: "explore", bug, code });
  if (answer.kind !== "explore") throw new Error("the worker answered another question");
  return answer.explored;
}
