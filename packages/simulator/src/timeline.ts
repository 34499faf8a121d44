/** A run as text: machines as columns, one line an event. For people who have to understand a failure. */

import { keyId, recordFence } from "solehold/internal";
import { describeConfig } from "./config.ts";
import type { RunResult } from "./result.ts";
import type { AppliedWrite } from "./store/engine.ts";

const COLUMN = 30;
const MOST_LINES = 200;

/** Seed, drawn configuration, what happened, what was broken. */
export function report(result: RunResult): string {
  const { seed, config, violation } = result;
  const verdict = violation === null ? "all promises held" : `${violation.oracle}: ${violation.message}`;
  return `seed ${seed}: ${verdict}\n${describeConfig(config)}\n\n${timelineText(result)}`;
}

/** The last lines when there are too many. */
export function timelineText({ timeline }: RunResult): string {
  const columns = [...new Set(timeline.map(({ who }) => machineOf(who)))].sort();
  const head = `${"ms".padStart(10)}  ${columns.map((name) => name.padEnd(COLUMN)).join("")}`;
  const shown = timeline.slice(-MOST_LINES);
  const lines = shown.map(({ atMs, who, text }) => {
    const indent = columns.indexOf(machineOf(who)) * COLUMN;
    const life = who.includes(".") ? `(life ${who.split(".")[1]}) ` : "";
    return `${atMs.toFixed(2).padStart(10)}  ${" ".repeat(indent)}${life}${text}`;
  });
  const cut =
    timeline.length > shown.length ? [`... ${timeline.length - shown.length} earlier lines left out`] : [];
  return [head, ...cut, ...lines].join("\n");
}

function machineOf(who: string): string {
  return who.split(".")[0] ?? who;
}

export function describeWrite({ key, after, by }: AppliedWrite): string {
  if (after === null) return `${by}: ${keyId(key)} deleted`;
  return `${by}: ${keyId(key)} ${after.state} by ${after.holder}, fence ${recordFence(after)}, until ${after.expiresAtMs}`;
}
