export { heldForMs, isWorthWaiting, mayBeGranted } from "./outcomes.ts";
export type { QueuedWaiter, QueueView } from "./queue-view.ts";
export { type WaitEnd, WaitEndedError } from "./wait-ended-error.ts";
export { WaitQueue, type WaitQueueOptions, withWaitQueue } from "./wait-queue.ts";
