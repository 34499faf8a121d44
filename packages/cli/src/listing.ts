/** Lists of leases: gathered page by page, printed as an aligned table or a document. */
import type { LeaseExecutor, LeaseView } from "solehold";
import type { Invocation } from "./command.ts";
import { shortDuration } from "./text/duration.ts";
import { leaseDocument, leaseStatus } from "./text/lease.ts";
import { type Colour, painter, printable } from "./text/style.ts";
import { type Column, tableLines } from "./text/table.ts";

export interface ListingQuery {
  readonly prefix: string;
  readonly which: "live" | "all";
  readonly limit: number;
  readonly holder?: string;
}

export interface Listing {
  readonly leases: readonly LeaseView[];
  readonly corrupt: readonly { readonly key: string; readonly detail: string }[];
}

const PAGE = 500;

export async function listLeases(
  executor: LeaseExecutor,
  tenant: string,
  query: ListingQuery,
): Promise<Listing> {
  const { prefix, which, limit, holder } = query;
  const leases: LeaseView[] = [];
  const corrupt: { key: string; detail: string }[] = [];
  const filter = {
    tenant,
    prefix,
    limit: PAGE,
    ...(holder === undefined ? {} : { holder }),
    ...(which === "live" ? { state: "held" as const } : {}),
  };
  let after: string | null = null;
  do {
    const page = await executor.list({ ...filter, ...(after === null ? {} : { after }) });
    for (const lease of page.leases) {
      if (which === "all" || lease.live) leases.push(lease);
      if (leases.length >= limit) return { leases, corrupt };
    }
    for (const { key, detail } of page.corrupt) corrupt.push({ key: key.name, detail });
    after = page.next;
  } while (after !== null);
  return { leases, corrupt };
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

export function printListing({ io, flags }: Invocation, { leases, corrupt }: Listing): void {
  if (flags.has("json")) {
    io.stdout.write(`${JSON.stringify({ leases: leases.map(leaseDocument), corrupt })}\n`);
    return;
  }
  for (const { key, detail } of corrupt) {
    io.stderr.write(`solehold: the record of ${printable(key)} is damaged: ${printable(detail)}\n`);
  }
  if (leases.length === 0) {
    io.stderr.write("solehold: no such leases\n");
    return;
  }
  const paint = painter(io, io.stdout);
  const lines = tableLines(COLUMNS, leases.map(rowOf), io.stdout.columns(), (cell, column, row) => {
    if (row === "title") return paint("bold", cell);
    if (column === STATE_COLUMN) return paint(STATUS_COLOURS[cell.trim()] ?? "dim", cell);
    return leases[row]?.live === true ? cell : paint("dim", cell);
  });
  io.stdout.write(`${lines.join("\n")}\n`);
}

function rowOf(view: LeaseView): readonly string[] {
  const { key, holder, fence, purpose } = view;
  const remaining = view.live ? shortDuration(view.remainingMs) : "-";
  return [printable(key.name), printable(holder), fence.toString(), leaseStatus(view), remaining, purpose];
}
