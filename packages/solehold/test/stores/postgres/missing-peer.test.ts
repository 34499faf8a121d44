/** Without the optional package the error names the command that installs it. */
import { expect, it, vi } from "vitest";
import { openPostgresStore } from "../../../src/stores/postgres/index.ts";

vi.mock("pg", () => {
  throw Object.assign(new Error("Cannot find package 'pg'"), { code: "ERR_MODULE_NOT_FOUND" });
});

it("a store by URL without the package 'pg' says how to install it", async () => {
  await expect(openPostgresStore({ url: "postgres://localhost/db" })).rejects.toMatchObject({
    kind: "config",
    outcome: "not-applied",
    message: "the package 'pg' is missing: run `npm install pg`",
  });
});
