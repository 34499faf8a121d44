/** What leases protect: a guarded resource for each key, which takes writes by their fences alone. */
import { FencedResource } from "solehold/guards";
import { keyId, StaleFenceError } from "solehold/internal";
import type { GuardedWrite, Mutations } from "../mutations.ts";

export class GuardedResources {
  readonly #resources = new Map<string, FencedResource<number>>();
  readonly #guard: Mutations["guard"];

  /** `guard` is what was planted in the place of the real one. */
  constructor(guard: Mutations["guard"]) {
    this.#guard = guard;
  }

  accepts(write: GuardedWrite): boolean {
    const id = keyId(write.key);
    const resource = this.#resources.get(id) ?? new FencedResource(0);
    this.#resources.set(id, resource);
    if (this.#guard !== undefined) return this.#guard(resource, write);
    try {
      resource.write(write, (count) => count + 1);
      return true;
    } catch (error) {
      if (error instanceof StaleFenceError) return false;
      throw error;
    }
  }
}
