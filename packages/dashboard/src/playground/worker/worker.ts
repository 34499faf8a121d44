/** The worker: the shipped code, the simulator and the explorer, away from the page's own thread. */
import "../node/globals.ts";
import { EXPLORABLE_BUGS, EXPLORE_WORLDS, explore } from "@solehold/simulator";
import { play } from "./play.ts";
import type { Answer, Envelope, Question, Reply } from "./protocol.ts";

/** One at a time: a run replaces the clocks of its thread. */
let last: Promise<void> = Promise.resolve();

self.addEventListener("message", ({ data }: MessageEvent<Envelope<Question>>) => {
  last = last.then(async () => {
    const reply = (content: Reply["content"]): void => postMessage({ id: data.id, content } satisfies Reply);
    try {
      reply(await answer(data.content));
    } catch (error) {
      reply({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
    }
  });
});

async function answer(question: Question): Promise<Answer> {
  if (question.kind === "play") {
    const { world, title, bug } = question;
    return { kind: "play", trace: await play(world, title, bug) };
  }
  const found = EXPLORABLE_BUGS[question.bug];
  if (found === undefined) throw new RangeError(`no small world shows '${question.bug}'`);
  const rules = question.code === "broken" ? found.rules : {};
  return {
    kind: "explore",
    explored: { world: found.world, ...explore(EXPLORE_WORLDS[found.world], { rules }) },
  };
}
