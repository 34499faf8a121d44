/** The leases under a prefix, as an aligned table or one document; or one lease in full. */
import type { LeaseExecutor, LeaseView } from "solehold";
import { given, leaseStatus, pagesOf, slotIn } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import { EXIT } from "../failure.ts";
import { printAnswer, printNotice } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import { byName, detailLines, leaseDocument } from "../format/lease.ts";
import { type Column, tableLines } from "../format/table.ts";
import { type Colour, painter } from "../format/terminal.ts";
import { wholeOption } from "../parse/option-values.ts";

export interface ListingQuery {
  readonly tenant: string;
  readonly prefix: string;
  readonly which: "live" | "all";
  readonly limit: number;
  readonly holder?: string;
}

export interface Listing {
  readonly leases: readonly LeaseView[];
  /** Records that cannot be read. */
  readonly corrupt: readonly { readonly key: string; readonly detail: string }[];
}

const PAGE = 500;

export async function ls(invocation: Invocation): Promise<number> {
  const { flags, values, positionals } = invocation;
  const [prefix = ""] = positionals;
  const which = flags.has("all") ? "all" : "live";
  const limit = wholeOption(invocation, "limit") ?? Number.POSITIVE_INFINITY;
  const filter = { prefix, which, limit, ...given({ holder: values.holder }) } as const;
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const listing = await listLeases(executor, { tenant, ...filter });
    if (flags.has("count")) printCount(invocation, listing);
    else printListing(invocation, listing);
    return EXIT.ok;
  });
}

/** Reads page by page until the end or the limit. */
export async function listLeases(executor: LeaseExecutor, query: ListingQuery): Promise<Listing> {
  const { tenant, prefix, which, limit, holder } = query;
  const state = which === "live" ? ("held" as const) : undefined;
  const leases: LeaseView[] = [];
  const corrupt: { key: string; detail: string }[] = [];
  const all = { tenant, prefix, limit: PAGE, ...given({ holder, state }) };
  for await (const page of pagesOf((each) => executor.list(each), all)) {
    for (const lease of page.leases) {
      if (which === "all" || lease.live) leases.push(lease);
      if (leases.length >= limit) return { leases, corrupt };
    }
    for (const { key, detail } of page.corrupt) corrupt.push({ key: key.name, detail });
  }
  return { leases, corrupt };
}

function printCount(invocation: Invocation, { leases: { length } }: Listing): void {
  printAnswer(invocation, { document: () => ({ count: length }), lines: () => [String(length)] });
}

const COLUMNS: readonly Column[] = [
  { title: "KEY", align: "left" },
  { title: "HOLDER", align: "left", elastic: "yes" },
  { title: "FENCE", align: "right" },
  { title: "STATE", align: "left" },
  { title: "REMAINING", align: "right" },
  { title: "PURPOSE", align: "left" },
];
const STATE_COLUMN = 3;

const STATUS_COLOURS: Readonly<Record<string, Colour>> = {
  held: "green",
  grace: "yellow",
  breaking: "yellow",
  revoked: "red",
};

function printListing(invocation: Invocation, { leases, corrupt }: Listing): void {
  const { io, flags } = invocation;
  if (!flags.has("json")) {
    for (const { key, detail } of corrupt) printNotice(io, `the record of ${key} is damaged: ${detail}`);
    if (leases.length === 0) {
      printNotice(io, "no leases to show");
      return;
    }
  }
  const paint = painter(io, io.stdout);
  const rows = rowsOf(leases);
  const paintCell = (cell: string, column: number, row: number | "title"): string => {
    if (row === "title") return paint("bold", cell);
    if (column === STATE_COLUMN) return paint(STATUS_COLOURS[cell.trim()] ?? "dim", cell);
    return rows[row]?.live === true ? cell : paint("dim", cell);
  };
  printAnswer(invocation, {
    document: () => ({ leases: leases.map(leaseDocument), corrupt }),
    painted: () =>
      tableLines(
        COLUMNS,
        rows.map(({ cells }) => cells),
        io.stdout.columns(),
        paintCell,
      ),
  });
}

interface Row {
  readonly cells: readonly string[];
  readonly live: boolean;
}

/** The slots of a name are one thing, with its parts below it. */
function rowsOf(leases: readonly LeaseView[]): readonly Row[] {
  return [...byName(leases, ({ key }) => key.name)].flatMap(([name, views]) => {
    const [only] = views;
    if (views.length === 1 && only?.key.name === name) return [{ cells: rowOf(name, only), live: only.live }];
    const live = views.filter((view) => view.live).length;
    const title = [name, `${live} ${live === 1 ? "slot" : "slots"} held`, "", "", "", ""];
    const slotOf = (view: LeaseView): number => slotIn(view.key.name).slot;
    const parts = views.sort((a, b) => slotOf(a) - slotOf(b));
    return [
      { cells: title, live: live > 0 },
      ...parts.map((view) => ({ cells: rowOf(`  slot ${slotOf(view)}`, view), live: view.live })),
    ];
  });
}

function rowOf(title: string, view: LeaseView): readonly string[] {
  const { holder, fence, purpose } = view;
  const remaining = view.live ? shortDuration(view.remainingMs) : "-";
  return [title, holder, fence.toString(), leaseStatus(view), remaining, purpose];
}

/** All that anybody may know about one lease. */
export async function get(invocation: Invocation): Promise<number> {
  const name = keyOf(invocation);
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const view = await executor.read({ tenant, name });
    printAnswer(invocation, {
      document: () => (view === null ? null : leaseDocument(view)),
      lines: () => (view === null ? [`${name}: nothing was ever granted`] : detailLines(view)),
    });
    return view === null ? EXIT.error : EXIT.ok;
  });
}
