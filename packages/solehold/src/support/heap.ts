/** A binary heap: the first item in an order is at hand, and an item is added or taken out in logarithmic time. */
export class Heap<Item> {
  readonly #items: Item[];
  readonly #isBefore: (a: Item, b: Item) => boolean;

  /** `sorted`: items to begin with, in this order. */
  constructor(isBefore: (a: Item, b: Item) => boolean, sorted: readonly Item[] = []) {
    this.#isBefore = isBefore;
    this.#items = [...sorted];
  }

  get size(): number {
    return this.#items.length;
  }

  get first(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    const items = this.#items;
    let index = items.push(item) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = items[parent] as Item;
      if (!this.#isBefore(item, above)) break;
      items[index] = above;
      index = parent;
    }
    items[index] = item;
  }

  /** Takes out the first item. */
  pop(): Item | undefined {
    const items = this.#items;
    const [first] = items;
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    let index = 0;
    for (;;) {
      const left = index * 2 + 1;
      if (left >= items.length) break;
      const isRight = left + 1 < items.length && this.#isBefore(items[left + 1] as Item, items[left] as Item);
      const child = isRight ? left + 1 : left;
      if (!this.#isBefore(items[child] as Item, last)) break;
      items[index] = items[child] as Item;
      index = child;
    }
    items[index] = last;
    return first;
  }
}
