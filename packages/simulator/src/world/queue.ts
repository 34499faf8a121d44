/** Events in the order of their time; among equals the tie decides, which the seed draws. */

export interface QueuedEvent {
  atMs: number;
  tie: number;
  /** Whose event it is; a frozen owner's events wait. Null for the world itself. */
  readonly owner: EventOwner | null;
  readonly label: string;
  readonly run: () => void;
  cancelled: boolean;
}

export interface EventOwner {
  readonly name: string;
  readonly frozen: boolean;
  /** Keeps the event until its owner thaws. */
  hold(event: QueuedEvent): void;
}

export function isBefore(a: QueuedEvent, b: QueuedEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.tie < b.tie);
}
