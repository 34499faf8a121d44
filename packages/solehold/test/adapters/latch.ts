export interface Latch {
  readonly opened: Promise<void>;
  open(): void;
}

/** Closed until somebody opens it. */
export function latch(): Latch {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
