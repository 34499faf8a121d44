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

export class EventQueue {
  readonly #heap: QueuedEvent[] = [];

  get size(): number {
    return this.#heap.length;
  }

  peek(): QueuedEvent | undefined {
    return this.#heap[0];
  }

  push(event: QueuedEvent): void {
    const heap = this.#heap;
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, event)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = event;
  }

  pop(): QueuedEvent | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      const left = heap[index * 2 + 1];
      const right = heap[index * 2 + 2];
      if (left === undefined) break;
      const rightIsFirst = right !== undefined && isBefore(right, left);
      const smaller = rightIsFirst ? right : left;
      if (!isBefore(smaller, last)) break;
      heap[index] = smaller;
      index = rightIsFirst ? index * 2 + 2 : index * 2 + 1;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(a: QueuedEvent, b: QueuedEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.tie < b.tie);
}
