/** Answers that a component shows: of a question that it always asks, and of what somebody asks it to do. */
import { useEffect, useState } from "preact/hooks";

export interface Answered<Answer> {
  /** The latest; an old one stays until the next is here. Null before the first. */
  readonly answer: Answer | null;
  /** Why the last question has no answer; null when it has one. */
  readonly error: unknown;
  readonly isBusy: boolean;
}

const UNASKED: Answered<never> = { answer: null, error: null, isBusy: false };

/** Asks at once, and again when `dependencies` change. Only the answer to the last question counts. */
export function useAnswer<Answer>(
  ask: (signal: AbortSignal) => Promise<Answer>,
  dependencies: readonly unknown[],
): Answered<Answer> {
  const [state, setState] = useState<Answered<Answer>>({ ...UNASKED, isBusy: true });
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, isBusy: true }));
    settle(ask(abort.signal), (change) => abort.signal.aborted || setState(change));
    return () => abort.abort();
  }, dependencies);
  return state;
}

/** For a button: acts when it is pressed. */
export function useAction<Answer, Input = void>(
  act: (input: Input) => Promise<Answer>,
): Answered<Answer> & { run: (input: Input) => void } {
  const [state, setState] = useState<Answered<Answer>>(UNASKED);
  const run = (input: Input): void => {
    setState((before) => ({ ...before, isBusy: true }));
    settle(act(input), setState);
  };
  return { ...state, run };
}

function settle<Answer>(
  asked: Promise<Answer>,
  set: (change: (before: Answered<Answer>) => Answered<Answer>) => void,
): void {
  asked.then(
    (answer) => set(() => ({ answer, error: null, isBusy: false })),
    (error: unknown) => set((before) => ({ ...before, error, isBusy: false })),
  );
}
