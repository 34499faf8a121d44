/** Two holders of one lease, one after the other; the first does not know that it lost it. */

import { fenceOf } from "../../src/core/index.ts";
import type { Fenced } from "../../src/guards/fenced-resource.ts";

const key = { tenant: "default", name: "it's/the report" };

/** Above 2^53 and in a term: a guard that goes through doubles takes both for the same. */
export const zombie: Fenced = { key, fence: fenceOf(3n, 2n ** 53n) };
export const successor: Fenced = { key, fence: fenceOf(3n, 2n ** 53n + 1n) };
/** A later term with a lower generation is newer. */
export const newTerm: Fenced = { key, fence: fenceOf(4n, 1n) };

export const ATTEMPTS = 20;
