// The seed documents as data: rows, and the artifacts that are made of them and of a test run.
export * from "./artifacts.mjs";
export * from "./rows.mjs";
