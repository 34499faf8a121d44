/** Whether the work behind a lease is alive. A holder that cannot work must not keep others from it. */
import type { Env } from "../env/index.ts";

/** Asked before each renewal; false, a throw or silence stops renewing. */
export type LivenessProbe = () => boolean | Promise<boolean>;

export function probeSaysAlive(probe: LivenessProbe, env: Env, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const silence = env.timer(timeoutMs, () => resolve(false));
    const answer = (alive: unknown): void => {
      silence.cancel();
      resolve(alive === true);
    };
    Promise.resolve()
      .then(probe)
      .then(answer, () => answer(false));
  });
}
