export { heldForMs, isWorthWaiting, mayBeGranted } from "./outcomes.ts";
export type { QueuedWaiter, QueueView } from "./queue-view.ts";
export { type WaitEnd, WaitEndedError } from "./wait-ended-error.ts";
export { type QueueLength, WaitQueue, type WaitQueueOptions, withWaitQueue } from "./wait-queue.ts";
