/** What leases protect: a guarded resource for each key, which takes writes by their fences alone. */
import { FencedResource } from "solehold/guards";
import { keyId, StaleFenceError } from "solehold/internal";
import type { GuardedStep, Mutations } from "../mutations.ts";

export class GuardedResources {
  readonly #resources = new Map<string, FencedResource<number>>();
  readonly #guard: NonNullable<Mutations["guard"]>;

  /** `guard` is what was planted in the place of the real one. */
  constructor(guard: Mutations["guard"]) {
    this.#guard = guard ?? guarded;
  }

  accepts(step: GuardedStep): boolean {
    const id = keyId(step.key);
    const resource = this.#resources.get(id) ?? new FencedResource(0);
    this.#resources.set(id, resource);
    return this.#guard(resource, step);
  }
}

/** The real guard. */
export function guarded(resource: FencedResource<number>, step: GuardedStep): boolean {
  try {
    if (step.kind === "raise") resource.raise(step);
    else resource.write(step, (count) => count + 1);
    return true;
  } catch (error) {
    if (error instanceof StaleFenceError) return false;
    throw error;
  }
}
