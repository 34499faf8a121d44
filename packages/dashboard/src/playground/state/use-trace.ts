/** The trace of what the view names, played in the worker. While the next one is on its way the last one stays. */
import type { Trace } from "@solehold/simulator";
import { useEffect, useRef, useState } from "preact/hooks";
import { playInWorker } from "../worker/client.ts";
import type { Played } from "../worker/play.ts";

export interface PlayedTrace {
  readonly trace: Trace | null;
  readonly problem: string | null;
  readonly busy: boolean;
}

/** `world`: null where there is nothing to play. A new object is a new world. */
export function useTrace(world: Played | null, title: string, bug: string | null): PlayedTrace {
  const [state, setState] = useState<PlayedTrace>({ trace: null, problem: null, busy: true });
  const asked = useRef(0);
  useEffect(() => {
    asked.current += 1;
    const mine = asked.current;
    if (world === null) return;
    setState((before) => ({ ...before, busy: true }));
    playInWorker(world, title, bug).then(
      (trace) => {
        if (asked.current === mine) setState({ trace, problem: null, busy: false });
      },
      (error: Error) => {
        if (asked.current === mine)
          setState((before) => ({ ...before, problem: error.message, busy: false }));
      },
    );
  }, [world, title, bug]);
  return state;
}
