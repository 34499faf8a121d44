/** What can be wrong with a request before any route sees it, as problems. */
import type { Socket } from "node:net";
import type { Env, ProblemInput } from "solehold/internal";
import { problemOf, refusal } from "../protocol/problem.ts";
import { refuseSocket } from "../protocol/refuse-socket.ts";

export function routeNotFound(method: string): ProblemInput {
  const detail = `path has no such route for ${method}: see /openapi.json`;
  return { reason: "ROUTE_NOT_FOUND", detail, facts: { field: "path" } };
}

export function methodNotAllowed(method: string, allowed: readonly string[]): ProblemInput {
  const detail = `method must be ${allowed.join(" or ")} here, got ${method}`;
  return { reason: "METHOD_NOT_ALLOWED", detail, facts: { field: "method" } };
}

/** Errors of the framework; all others are problems already, or failures of the store or of this server. */
export function problemOfRequest(error: unknown): ProblemInput {
  const { statusCode = 500, code = "", message = "" } = error as Partial<Error> & FrameworkError;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    const detail = "body is larger than this server accepts: send several requests";
    return { reason: "BODY_TOO_LARGE", detail, facts: { field: "body" } };
  }
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    const detail = "content-type must be application/json";
    return { reason: "MEDIA_TYPE_UNSUPPORTED", detail, facts: { field: "content-type" } };
  }
  if (code === "FST_ERR_BAD_URL" || code === "FST_ERR_ASYNC_CONSTRAINT")
    return refusal("path", "is not a valid URL");
  if (code === "FST_ERR_CTP_INVALID_CONTENT_LENGTH")
    return refusal("content-length", "does not match the length of the body");
  if (statusCode >= 500) return problemOf(error);
  const fix = /prototype/.test(message)
    ? "must not have fields named __proto__ or constructor"
    : "must be a JSON object";
  return refusal("body", fix);
}

interface FrameworkError {
  readonly statusCode?: number;
  readonly code?: string;
}

const BAD_HTTP: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, "headers are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "request did not arrive in time"],
};
const NO_TRACE = "0".repeat(32);

/** Bytes that are not HTTP never reach a route; they still get an answer that says so. */
export function answerBadHttp(error: Error & { code?: string }, socket: Socket, env: Env): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [status, detail] = BAD_HTTP[error.code ?? ""] ?? [400, "request is not valid HTTP/1.1"];
  const facts = { field: "request" };
  refuseSocket(socket, { status, reason: "INPUT_SCHEMA_INVALID", detail, facts }, NO_TRACE, env);
}
