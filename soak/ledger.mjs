// What a soak must not lose: a guarded counter for each key, and everything that was granted, written and refused.
// The driver keeps it, so no store and no worker can make it look better than it is.

/**
 * @typedef {object} Grant
 * @property {string} key
 * @property {bigint} fence
 * @property {string} holder
 * @property {number} beganMs When its worker began to ask, on the machine's monotonic clock.
 * @property {number} atMs When its worker had it.
 * @property {number} untilMs When its worker no longer acted on it, by its last report.
 */

export class Ledger {
  /** @type {Map<string, { value: number, newest: bigint, accepted: number }>} */
  #counters = new Map();
  /** @type {Map<string, Grant>} */
  #grants = new Map();
  /** @type {string[]} */
  violations = [];
  /** @type {Map<string, number>} How often which error stopped a worker from getting a lease. */
  failures = new Map();
  refused = 0;
  #guard;

  /** @param {readonly string[]} keys @param {"on" | "off"} guard "off" is a planted mistake. */
  constructor(keys, guard) {
    this.#guard = guard;
    for (const key of keys) this.#counters.set(key, { value: 0, newest: 0n, accepted: 0 });
  }

  get accepted() {
    return [...this.#counters.values()].reduce((sum, { accepted }) => sum + accepted, 0);
  }

  get value() {
    return [...this.#counters.values()].reduce((sum, { value }) => sum + value, 0);
  }

  get grants() {
    return this.#grants.size;
  }

  /** @param {string} holder @param {any} question @returns {{ ok: boolean, value: number }} */
  answer(holder, question) {
    const { kind, key } = question;
    if (kind === "failed") {
      this.failures.set(question.code, (this.failures.get(question.code) ?? 0) + 1);
      return { ok: true, value: 0 };
    }
    const fence = BigInt(question.fence);
    if (kind === "granted") return this.#granted(holder, fence, question);
    const counter = this.#counters.get(key);
    // Reading announces the fence as well: from then on no older writer can slip in between.
    if (this.#guard === "on" && fence < counter.newest) {
      this.refused += 1;
      return { ok: false, value: counter.value };
    }
    if (fence > counter.newest) counter.newest = fence;
    if (kind === "write") {
      counter.value = question.value;
      counter.accepted += 1;
      const grant = this.#grants.get(`${key} ${fence}`);
      if (grant !== undefined) grant.untilMs = Math.max(grant.untilMs, question.untilMs);
    }
    return { ok: true, value: counter.value };
  }

  /** The worker does not act on this grant any more. */
  ended({ key, fence, atMs }) {
    const grant = this.#grants.get(`${key} ${fence}`);
    if (grant !== undefined) grant.untilMs = Math.min(grant.untilMs, atMs);
  }

  /** The worker is dead. */
  gone(holder, atMs) {
    for (const grant of this.#grants.values()) {
      if (grant.holder === holder) grant.untilMs = Math.min(grant.untilMs, atMs);
    }
  }

  #granted(holder, fence, { key, beganMs, atMs, untilMs }) {
    const id = `${key} ${fence}`;
    const other = this.#grants.get(id);
    if (other === undefined) this.#grants.set(id, { key, fence, holder, beganMs, atMs, untilMs });
    else this.violations.push(givenTwice(other, { key, fence, holder, beganMs, atMs, untilMs }));
    return { ok: true, value: 0 };
  }

  /** Every promise that was broken, in words. */
  verdict() {
    const found = [...this.violations];
    for (const [key, { value, accepted }] of this.#counters) {
      if (value !== accepted)
        found.push(
          `'${key}' counts ${value} after ${accepted} accepted writes: ${accepted - value} were lost`,
        );
      const grants = [...this.#grants.values()].filter((grant) => grant.key === key);
      found.push(...fencesThatWentBack(grants), ...overlaps(grants));
    }
    return found;
  }
}

/** With the times of both, on one clock: whether they met, or one came long after the other, says where to look. */
function givenTwice(one, other) {
  const times = ({ beganMs, atMs, untilMs }) =>
    `asked at ${beganMs.toFixed(1)}, had it at ${atMs.toFixed(1)}, until ${untilMs.toFixed(1)} ms`;
  const said = `fence ${one.fence} of '${one.key}' was given to ${one.holder} and to ${other.holder}`;
  return `${said} (${times(one)}; ${times(other)})`;
}

/** Whoever began to ask after a grant was there must get a higher fence. */
function fencesThatWentBack(grants) {
  const asked = grants.toSorted((a, b) => a.beganMs - b.beganMs);
  const had = grants.toSorted((a, b) => a.atMs - b.atMs);
  const found = [];
  let highest = null;
  let next = 0;
  for (const grant of asked) {
    for (; next < had.length && had[next].atMs < grant.beganMs; next += 1) {
      if (highest === null || had[next].fence > highest.fence) highest = had[next];
    }
    if (highest !== null && grant.fence <= highest.fence)
      found.push(
        `'${grant.key}' gave ${grant.holder} fence ${grant.fence} after ${highest.holder} had ${highest.fence}`,
      );
  }
  return found;
}

/** In the order of fences each belief must end before the next begins. */
function overlaps(grants) {
  const inOrder = grants.toSorted((a, b) => (a.fence < b.fence ? -1 : 1));
  const found = [];
  for (const [index, next] of inOrder.entries()) {
    const last = inOrder[index - 1];
    if (last === undefined || last.untilMs <= next.atMs) continue;
    const ms = (last.untilMs - next.atMs).toFixed(1);
    found.push(`${last.holder} and ${next.holder} both believed in '${next.key}' for ${ms} ms`);
  }
  return found;
}
