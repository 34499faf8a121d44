/** A holder is told that its lease is over no later than that, even if the store never answers again. */
import type { Oracle, Scene } from "./oracle.ts";

export function abortInTime(scene: Scene): Oracle {
  const name = "abort-in-time";
  return {
    name,
    afterEvent: () => {
      for (const believers of scene.believers.values()) {
        for (const believer of believers) {
          if (believer.ended() || !believer.overdue()) continue;
          scene.fail(name, `${believer.who} was not told that fence ${believer.fence} is over`);
        }
      }
    },
  };
}
