/** Whether the work behind a lease is alive. A holder that cannot work must let go. */
import type { Env } from "../env/index.ts";

/** Asked before each renewal; false, a throw or silence stops renewing. */
export type LivenessProbe = () => boolean | Promise<boolean>;

export function probeSaysAlive(probe: LivenessProbe, env: Env, patienceMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const silence = env.timer(patienceMs, () => resolve(false));
    const answer = (alive: unknown): void => {
      silence.cancel();
      resolve(alive === true);
    };
    Promise.resolve()
      .then(probe)
      .then(answer, () => answer(false));
  });
}
