/** The path of promtool, installed if it is not there yet. Rejects where that is not possible, with what to do. */
export function ensurePromtool(say?: (message: string) => void): Promise<string>;
/** What promtool says to the alert rules and their cases in the folder, deploy/ if none is given. Rejects with what it objects to. */
export function checkAlerts(folder?: string): Promise<string>;
