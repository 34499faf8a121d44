/** Moved: the embedded store lies in `stores/sqlite`. */
export * from "../sqlite/index.ts";
