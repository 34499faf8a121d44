/** What a test of the HTTP interface asks for, and what every refusal must look like. */
import { expect } from "vitest";
import type { Answer } from "./server.ts";

export const owner = { name: "a/b", holder: "me", token: "token-of-me" };

export function expectProblem(answer: Answer, status: number, reason: string, code: string): void {
  expect({ status: answer.status, reason: answer.body.reason, code: answer.body.code }).toEqual({
    status,
    reason,
    code,
  });
  expect(answer.headers.get("content-type")).toBe("application/problem+json; charset=utf-8");
  expect(answer.body.status).toBe(status);
  expect(answer.body.type).toBe(`urn:solehold:problem:${reason.toLowerCase().replaceAll("_", "-")}`);
  expect(answer.body.reasonCode).toBeTypeOf("number");
  expect(answer.body.traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(answer.body.detail.length).toBeGreaterThan(5);
}
