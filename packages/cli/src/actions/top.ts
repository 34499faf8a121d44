/** What is held and waited for, on the whole terminal, drawn again with every change and every second, until Ctrl-C. */
import type { LeaseExecutor, LeaseView } from "solehold";
import {
  delay,
  type LeaseChange,
  LeaseWatcher,
  type QueueEvent,
  realEnv,
  slotIn,
  type Timer,
} from "solehold/internal";
import type { Invocation } from "../command.ts";
import { urlOf, withLeases } from "../connection.ts";
import { failureOf } from "../format/errors.ts";
import { painter } from "../format/terminal.ts";
import { type SeenLease, type TopOrder, topLines } from "../format/top-screen.ts";
import { withoutSecrets } from "../format/url.ts";
import { interruptible, untilInterrupted } from "../interrupt.ts";
import type { Output } from "../io.ts";
import { durationOption } from "../parse/option-values.ts";
import { ls } from "./ls.ts";

const DEFAULT_EVERY_MS = 1_000;
const DRAW_EVERY_MS = 1_000;
/** Changes that follow each other more quickly are drawn together. */
const GATHER_MS = 50;
const SMALL = { columns: 80, rows: 24 };

export async function top(invocation: Invocation): Promise<number> {
  const { io, flags, positionals, values } = invocation;
  if (!io.stdout.isTTY || flags.has("json")) return await ls(invocation);
  const [prefix = ""] = positionals;
  const everyMs = durationOption(invocation, "every", 10) ?? DEFAULT_EVERY_MS;
  const leases = new Map<string, SeenLease>();
  /** How many slots of a name were seen, held or ended. */
  const slots = new Map<string, number>();
  let waiting: (name: string) => number = () => 0;
  let trouble = "";
  const paint = painter(io, io.stdout);
  const lines = (): readonly string[] =>
    topLines(
      {
        leases: [...leases.values()],
        demand: (name) => ({ waiting: waiting(name), slots: slots.get(name) ?? 1 }),
        order: (values.sort as TopOrder | undefined) ?? "key",
        nowMs: realEnv.monotonicMs(),
        title: `${prefix === "" ? "" : `under ${prefix} `}at ${withoutSecrets(urlOf(invocation))}  (Ctrl-C ends)`,
        trouble,
        size: {
          columns: io.stdout.columns() ?? SMALL.columns,
          rows: io.stdout.rows() ?? SMALL.rows,
        },
      },
      paint,
    );
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const screen = new Screen(io.stdout, lines);
    const onChange = ({ kind, view }: LeaseChange): void => {
      if (kind === "removed" || !view.live) leases.delete(view.key.name);
      else leases.set(view.key.name, { view, seenMs: realEnv.monotonicMs() });
      trouble = "";
      screen.drawSoon();
    };
    const onSeen = ({ key }: LeaseView): void => {
      const { name, slot } = slotIn(key.name);
      if (slot >= (slots.get(name) ?? 1)) slots.set(name, slot + 1);
    };
    const onTrouble = (error: unknown): void => {
      trouble = `${failureOf(error).message}; still watching`;
      screen.drawSoon();
    };
    const queues = new Map<string, number>();
    const onQueue = (event: QueueEvent): void => {
      if (event.kind === "reset") queues.clear();
      else if (event.waiting === 0) queues.delete(event.key.name);
      else queues.set(event.key.name, event.waiting);
      waiting = (name) => queues.get(name) ?? 0;
      screen.drawSoon();
    };
    const options = { env: realEnv, executor, tenant, prefix, everyMs, onChange, onSeen, onQueue, onTrouble };
    const stopped = new AbortController();
    screen.open();
    try {
      const watcher = new LeaseWatcher(options);
      void countTickets(executor, tenant, everyMs, stopped.signal, (counts) => {
        waiting = counts;
        screen.drawSoon();
      });
      return await untilInterrupted(() => interruptible(io, (signal) => watcher.run(signal)));
    } finally {
      stopped.abort();
      screen.close();
    }
  });
}

/** Without a server nobody knows all who wait; processes that wait for one another show it by tickets in the store. */
async function countTickets(
  { tickets }: LeaseExecutor,
  tenant: string,
  everyMs: number,
  signal: AbortSignal,
  onCounts: (counts: (name: string) => number) => void,
): Promise<void> {
  while (tickets !== undefined && !signal.aborted) {
    // The watcher says what is wrong with the store.
    const counts = await tickets.counts(tenant).catch(() => null);
    if (counts !== null && !signal.aborted) onCounts(counts);
    await delay(realEnv, everyMs, signal);
  }
}

/** The terminal's second screen: what was on the first one is back when it closes. */
class Screen {
  readonly #output: Output;
  readonly #lines: () => readonly string[];
  #timer: Timer | null = null;
  #isPlanned = false;

  constructor(output: Output, lines: () => readonly string[]) {
    this.#output = output;
    this.#lines = lines;
  }

  open(): void {
    this.#output.write("\u001b[?1049h\u001b[?25l");
    this.#draw();
  }

  close(): void {
    this.#timer?.cancel();
    this.#output.write("\u001b[?25h\u001b[?1049l");
  }

  drawSoon(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#plan(GATHER_MS);
  }

  #draw(): void {
    this.#isPlanned = false;
    // Each line is cleared to its end, and what is below the last: nothing flickers, and nothing is left over.
    const text = this.#lines().map((line) => `${line}\u001b[K`);
    this.#output.write(`\u001b[H${text.join("\r\n")}\u001b[J`);
    this.#plan(DRAW_EVERY_MS);
  }

  #plan(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = realEnv.timer(delayMs, () => this.#draw());
  }
}
