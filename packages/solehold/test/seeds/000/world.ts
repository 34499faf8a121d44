import {
  LeaseService,
  LeaseServiceError,
  type LeaseServiceOptions,
  ManualEnv,
} from "../../../src/facades/seeds.ts";

export { ManualEnv };
export const SECOND_MS = 1_000;

export function service(options: LeaseServiceOptions = {}) {
  const env = new ManualEnv();
  return {
    env,
    leases: new LeaseService({ env, ...options }),
    nowSecs: () => Math.floor(env.wallMs() / SECOND_MS),
  };
}

/** LS_OK, or the code of the error. */
export async function settled(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "LS_OK";
  } catch (error) {
    if (error instanceof LeaseServiceError) return error.code;
    throw error;
  }
}

/** A text that is an instant in ISO 8601. */
export function isIsoInstant(timestamp: unknown): boolean {
  return typeof timestamp === "string" && new Date(timestamp).toISOString() === timestamp;
}
