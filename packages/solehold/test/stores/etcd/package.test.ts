/** Without its package the store says which one to install. */
import { expect, it, vi } from "vitest";
import { rejection } from "../records.ts";

it("a missing package is a config error that says how to install it", async () => {
  vi.doMock("@grpc/grpc-js", () => {
    throw new Error("Cannot find package '@grpc/grpc-js'");
  });
  const { openEtcdStore } = await import("../../../src/stores/etcd/index.ts");
  const error = await rejection(openEtcdStore({ url: "etcd://127.0.0.1" }));
  expect(error).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
  expect(error.message).toContain("npm install @grpc/grpc-js");
});
