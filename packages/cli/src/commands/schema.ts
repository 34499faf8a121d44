/** `solehold schema`: what a store needs to be created before it can be used, for those who create it by hand. */
import { type Command, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "schema",
  summary: "Print a store's schema, to create it by hand",
  usage: "[STORE] [options]",
  positionals: [{ name: "STORE", presence: "optional", choices: ["postgres"] }],
  options: {
    schema: value("NAME", "the schema in the database (default solehold)"),
    table: value("NAME", "the table (default work_order_leases)"),
    ...COMMON_OPTIONS,
  },
  notes: ["STORE is postgres, which is the default. Other stores create what they need by themselves."],
  examples: { "solehold schema postgres | psql app": "with the rights of an administrator" },
  action: async () => (await import("../actions/schema.ts")).schema,
};
