/** One line per change, until Ctrl-C: aligned and coloured for people, JSON for scripts. */
import { type LeaseChange, type LeaseChangeKind, LeaseWatcher, realEnv } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { withLeases } from "../connection.ts";
import { printNotice } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import { failureOf } from "../format/errors.ts";
import { isoTime, leaseDocument } from "../format/lease.ts";
import { type Colour, escapeControls, painter } from "../format/terminal.ts";
import { interruptible, untilInterrupted } from "../interrupt.ts";
import { durationOption } from "../parse/option-values.ts";

const DEFAULT_EVERY_MS = 1_000;

export async function watch(invocation: Invocation): Promise<number> {
  const { io, flags, positionals } = invocation;
  const [prefix = ""] = positionals;
  const everyMs = durationOption(invocation, "every", 10) ?? DEFAULT_EVERY_MS;
  const print = changePrinter(invocation);
  const onChange = (change: LeaseChange): void => {
    if (change.kind !== "renewed" || flags.has("renewals")) print(change);
  };
  const onTrouble = (error: unknown): void => printNotice(io, `${failureOf(error).message}; still watching`);
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const watcher = new LeaseWatcher({
      env: realEnv,
      executor,
      tenant,
      prefix,
      everyMs,
      onChange,
      onTrouble,
    });
    return await untilInterrupted(() => interruptible(io, (signal) => watcher.run(signal)));
  });
}

const COLOURS: { readonly [kind in LeaseChangeKind]: Colour } = {
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

function changePrinter({ io, flags }: Invocation): (change: LeaseChange) => void {
  const paint = painter(io, io.stdout);
  return ({ kind, view }) => {
    const at = isoTime(realEnv.wallMs());
    if (flags.has("json")) {
      io.stdout.write(`${JSON.stringify({ event: kind, at, ...leaseDocument(view) })}\n`);
      return;
    }
    const { key, holder, fence, live, remainingMs, handoff } = view;
    const parts = [
      key.name,
      `fence ${fence}`,
      holder,
      ...(live ? [`for ${shortDuration(remainingMs)}`] : []),
      ...(handoff === null ? [] : [`to ${handoff.successor}`]),
    ];
    const time = paint("dim", at.slice(11, 23));
    const change = paint(COLOURS[kind], kind.padEnd(KIND_WIDTH));
    io.stdout.write(`${time}  ${change}  ${escapeControls(parts.join("  "))}\n`);
  };
}
