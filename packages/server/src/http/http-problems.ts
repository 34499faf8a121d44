/** What can be wrong with a request before any route sees it, as problems. */
import type { Socket } from "node:net";
import { StoreError } from "solehold";
import { DATA_LOSS, ProblemError, type ProblemInput, problemBody, refusal } from "../protocol/problem.ts";

export function routeNotFound(method: string): ProblemInput {
  return {
    status: 404,
    reason: "ROUTE_NOT_FOUND",
    code: "LS_INVALID",
    detail: `path has no such route for ${method}: see /openapi.json`,
    facts: { field: "path" },
  };
}

export function methodNotAllowed(method: string, allowed: readonly string[]): ProblemInput {
  return {
    status: 405,
    reason: "METHOD_NOT_ALLOWED",
    code: "LS_INVALID",
    detail: `method must be ${allowed.join(" or ")} here, got ${method}`,
    facts: { field: "method" },
  };
}

/** Errors of the framework and of the store; anything else is a fault of this server. */
export function problemOfError(error: unknown): ProblemInput {
  if (error instanceof ProblemError) return error.input;
  if (error instanceof StoreError) return storeProblem(error);
  const {
    statusCode = 500,
    code = "",
    message = "",
  } = error as Partial<Error> & {
    statusCode?: number;
    code?: string;
  };
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    const detail = "body is larger than this server accepts: send several requests";
    return { status: 413, reason: "BODY_TOO_LARGE", code: "LS_INVALID", detail, facts: { field: "body" } };
  }
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    const detail = "content-type must be application/json";
    const facts = { field: "content-type" };
    return { status: 415, reason: "MEDIA_TYPE_UNSUPPORTED", code: "LS_INVALID", detail, facts };
  }
  if (code === "FST_ERR_BAD_URL" || code === "FST_ERR_ASYNC_CONSTRAINT")
    return refusal("path", "is not a valid URL");
  if (code === "FST_ERR_CTP_INVALID_CONTENT_LENGTH") {
    return refusal("content-length", "does not match the length of the body");
  }
  if (statusCode < 500) {
    return refusal(
      "body",
      /prototype/.test(message)
        ? "must not have fields named __proto__ or constructor"
        : "must be a JSON object",
    );
  }
  return {
    status: 500,
    reason: "INTERNAL_PIPELINE_ERROR",
    code: "LS_UNAVAILABLE",
    detail: "the server failed",
  };
}

/** Only the kind of failure leaves the server: the message may name hosts. */
export function storeProblem({ kind, outcome }: StoreError): ProblemInput {
  const facts = { outcome, storeError: kind, retryAfterMs: 1_000 } as const;
  const detail = kind === "data-loss" ? DATA_LOSS : "the store cannot be reached: try again";
  return { status: 503, reason: "STORE_UNAVAILABLE", code: "LS_UNAVAILABLE", detail, facts };
}

const BAD_HTTP: Readonly<Record<string, readonly [number, string, string]>> = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", "headers are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "request did not arrive in time"],
};

/** Bytes that are not HTTP never reach a route; they still get an answer that says so. */
export function answerBadHttp(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [status, title, detail] = BAD_HTTP[error.code ?? ""] ?? [
    400,
    "Bad Request",
    "request is not valid HTTP/1.1",
  ];
  const input: ProblemInput = {
    status,
    reason: "INPUT_SCHEMA_INVALID",
    code: "LS_INVALID",
    detail,
    facts: { field: "request" },
  };
  const body = JSON.stringify(problemBody(input, "0".repeat(32)));
  const lines = [
    `HTTP/1.1 ${status} ${title}`,
    "connection: close",
    "content-type: application/problem+json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}
