/** What this process writes passes here, so that it can stand still for a while: see door.ts for why it must. */
export class WriteGate {
  /** How many want it shut. */
  #shutBy = 0;
  #underWay = 0;
  #waiting: (() => void)[] = [];
  #waitingForStillness: (() => void)[] = [];

  get isShut(): boolean {
    return this.#shutBy > 0;
  }

  /** Only while it is shut. It may be shut again by the time that this is seen: look again. */
  opened(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** For a write that was not yet handed to the database, in the same turn as that. Only while the gate is open. */
  begin(): void {
    this.#underWay += 1;
  }

  /** It was answered, or failed. */
  end(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) wake(this.#waitingForStillness);
  }

  /** When the gate is open, and as one write, however many steps it takes. */
  async through<T>(write: () => Promise<T>): Promise<T> {
    while (this.isShut) await this.opened();
    this.begin();
    try {
      return await write();
    } finally {
      this.end();
    }
  }

  /** Resolves when nothing is under way any more. To be followed by one `open`. */
  async shut(): Promise<void> {
    this.#shutBy += 1;
    if (this.#underWay > 0) await new Promise<void>((resolve) => this.#waitingForStillness.push(resolve));
  }

  open(): void {
    this.#shutBy -= 1;
    if (this.#shutBy === 0) wake(this.#waiting);
  }
}

function wake(waiting: (() => void)[]): void {
  for (const resolve of waiting.splice(0)) resolve();
}
