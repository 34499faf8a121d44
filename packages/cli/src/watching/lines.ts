/** Changes as lines: aligned and coloured for people, JSON for scripts. */
import { realEnv } from "solehold";
import type { Io } from "../io.ts";
import { shortDuration } from "../text/duration.ts";
import { isoTime, leaseDocument } from "../text/lease.ts";
import { type Colour, painter, printable } from "../text/style.ts";
import type { Change, ChangeKind } from "./board.ts";

const COLOURS: { readonly [kind in ChangeKind]: Colour } = {
  held: "green",
  granted: "green",
  renewed: "dim",
  breaking: "yellow",
  released: "cyan",
  "handed over": "cyan",
  revoked: "red",
  expired: "yellow",
  removed: "dim",
};
const KIND_WIDTH = "handed over".length;

export function changePrinter(io: Io, format: "text" | "json"): (change: Change) => void {
  const paint = painter(io, io.stdout);
  return ({ kind, view }) => {
    const at = isoTime(realEnv.wallMs());
    if (format === "json") {
      io.stdout.write(`${JSON.stringify({ event: kind, at, ...leaseDocument(view) })}\n`);
      return;
    }
    const { key, holder, fence, live, remainingMs, handoff } = view;
    const time = paint("dim", at.slice(11, 23));
    const parts = [
      printable(key.name),
      `fence ${fence}`,
      printable(holder),
      ...(live ? [`for ${shortDuration(remainingMs)}`] : []),
      ...(handoff === null ? [] : [`to ${printable(handoff.successor)}`]),
    ];
    io.stdout.write(`${time}  ${paint(COLOURS[kind], kind.padEnd(KIND_WIDTH))}  ${parts.join("  ")}\n`);
  };
}
