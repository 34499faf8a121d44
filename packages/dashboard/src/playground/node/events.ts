/** Node's emitter, which the simulated connections to servers extend. The playground's worlds have no servers. */
export class EventEmitter {
  readonly #listeners = new Map<string, ((...values: readonly unknown[]) => void)[]>();

  on(name: string, listener: (...values: readonly unknown[]) => void): this {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
    return this;
  }

  emit(name: string, ...values: readonly unknown[]): boolean {
    const listeners = this.#listeners.get(name) ?? [];
    for (const listener of listeners) listener(...values);
    return listeners.length > 0;
  }
}

/** Node warns of many listeners on one signal; browsers do not. */
export function setMaxListeners(): void {}
