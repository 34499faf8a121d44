/** Paths as the simulated disk uses them. */
export const join = (...parts: readonly string[]): string => parts.join("/").replaceAll(/\/+/g, "/");
export const resolve = join;
export const basename = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const dirname = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));
