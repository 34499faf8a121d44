/** The tables of docs/capacity.md are those of the last measurement, which has a row for every engine. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Capacity, withTables } from "../../scripts/capacity/page.mjs";
import { ENGINES } from "../../soak/engines.mjs";
import { ROOT } from "./pages.ts";

const capacity = JSON.parse(readFileSync(join(ROOT, "artifacts/capacity.json"), "utf8")) as Capacity;

it("has a row for every engine", () => {
  expect(capacity.rows.map(({ name }) => name)).toEqual(Object.keys(ENGINES));
});

it("is what the page shows", () => {
  const page = readFileSync(join(ROOT, "docs/capacity.md"), "utf8");
  expect(page).toBe(withTables(page, capacity));
});
