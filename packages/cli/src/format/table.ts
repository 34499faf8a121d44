/** Aligned columns. Widths are counted as terminals do it, near enough: wide scripts take two cells. */
import { escapeControls } from "./terminal.ts";

export interface Column {
  readonly title: string;
  readonly align: "left" | "right";
  /** May be cut when the terminal is too narrow; at most one column should. */
  readonly elastic?: "yes";
}

const GAP = "  ";
const MIN_ELASTIC_WIDTH = 8;
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const NO_WIDTH = /\p{Mn}/u;

/** Lines without trailing space; the first has the titles. `paint` gets each cell, escaped and padded. */
export function tableLines(
  columns: readonly Column[],
  unescaped: readonly (readonly string[])[],
  widthLimit: number | null,
  paint: (cell: string, column: number, row: number | "title") => string,
): readonly string[] {
  const titles = columns.map(({ title }) => title);
  const rows = unescaped.map((cells) => cells.map(escapeControls));
  const widths = columns.map((_, index) =>
    Math.max(...[titles, ...rows].map((cells) => cellWidth(cells[index] ?? ""))),
  );
  shrinkElastic(columns, widths, widthLimit);
  const line = (cells: readonly string[], row: number | "title"): string =>
    columns
      .map(({ align }, index) => {
        const isLast = index === columns.length - 1;
        const cell = fit(cells[index] ?? "", widths[index] ?? 0, isLast && align === "left" ? "none" : align);
        return paint(cell, index, row);
      })
      .join(GAP)
      .trimEnd();
  return [line(titles, "title"), ...rows.map((cells, index) => line(cells, index))];
}

function shrinkElastic(columns: readonly Column[], widths: number[], limit: number | null): void {
  const elastic = columns.findIndex((column) => column.elastic === "yes");
  if (limit === null || elastic < 0) return;
  const total = widths.reduce((sum, width) => sum + width, 0) + GAP.length * (columns.length - 1);
  const width = widths[elastic] ?? 0;
  if (total > limit) widths[elastic] = Math.max(Math.min(width, MIN_ELASTIC_WIDTH), width - (total - limit));
}

function fit(text: string, width: number, align: "left" | "right" | "none"): string {
  const cut = cutTo(text, width);
  const padding = " ".repeat(Math.max(0, width - cellWidth(cut)));
  if (align === "none") return cut;
  return align === "right" ? `${padding}${cut}` : `${cut}${padding}`;
}

function cutTo(text: string, width: number): string {
  if (cellWidth(text) <= width) return text;
  let kept = "";
  for (const character of text) {
    if (cellWidth(kept) + cellWidth(character) + 1 > width) break;
    kept += character;
  }
  return `${kept}…`;
}

export function cellWidth(text: string): number {
  let width = 0;
  for (const character of text) width += NO_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}

/** Left-aligned, as wide as it needs. */
export function plainTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const columns = titles.map((title) => ({ title, align: "left" as const }));
  return tableLines(columns, rows, null, (cell) => cell);
}
