/** The header Idempotency-Key is the field of that name, or the request is refused: it is never ignored. */
import { expect, it } from "vitest";
import { testServer } from "../support/server.ts";

const body = { name: "job", holder: "me", token: "job-token" };

it.each(["order-1", '"order-1"'])("a POST that is repeated with %s gets the same answer", async (key) => {
  const server = await testServer();
  const first = await server.lease("acquire", body, { "idempotency-key": key });
  const second = await server.lease("acquire", body, { "idempotency-key": key });
  expect([first.status, second.status]).toEqual([200, 200]);
  expect(second.body.fence).toBe(first.body.fence);
  const field = await server.lease("acquire", { ...body, idempotencyKey: "order-1" });
  expect([field.status, field.body.fence]).toEqual([200, first.body.fence]);
});

it("a header that the body contradicts, or that a route cannot use, is refused", async () => {
  const server = await testServer();
  const twice = await server.lease("acquire", { ...body, idempotencyKey: "b" }, { "idempotency-key": "a" });
  expect([twice.status, twice.body.field]).toEqual([400, "idempotencyKey"]);
  const useless = await server.lease("renew", { leases: [body] }, { "idempotency-key": "a" });
  expect([useless.status, useless.body.field]).toEqual([400, "idempotencyKey"]);
});
