/** The path of nginx, installed if it is not there yet. Rejects where that is not possible, with what to do. */
export function ensureNginx(say?: (message: string) => void): Promise<string>;
/** nginx with these sites, which are to listen on the given port of loopback. */
export function startNginx(
  sitesOn: (port: number) => string,
): Promise<{ readonly port: number; stop(): Promise<void> }>;
