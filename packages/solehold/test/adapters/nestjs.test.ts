/** The module and the decorators with Nest itself; decorators are applied by hand, as TypeScript would apply them. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { currentLease, Lease, LeasesModule, OncePer } from "../../src/adapters/nestjs.ts";
import { connect, Leases } from "../../src/index.ts";
import { latch } from "./latch.ts";
import { Injectable, Module, Reflector, SetMetadata, Test } from "./packages/nestjs.ts";

type Type = new (...args: never[]) => object;

/** `@decorators[0] @decorators[1] method() {}`: the last one is applied first. */
function decorate(type: Type, method: string, ...decorators: readonly unknown[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, method) ?? {};
  for (const each of decorators.toReversed()) (each as MethodDecorator)(type.prototype, method, descriptor);
  Object.defineProperty(type.prototype, method, descriptor);
}

let folder: string;
const closing: (() => Promise<void>)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "solehold-nestjs-"));
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  rmSync(folder, { recursive: true, force: true });
});

/** An application with leases on the store of the test, as a replica has it. */
async function replica<Created extends object>(type: new (...args: never[]) => Created, holder: string) {
  class App {}
  const useFactory = () => connect(`embedded:${folder}`, { holder });
  Module({ imports: [LeasesModule.forRootAsync({ useFactory })], providers: [type] })(App);
  const app = await (await Test.createTestingModule({ imports: [App] }).compile()).init();
  closing.push(() => app.close());
  return { app, service: app.get<Created>(type), leases: app.get(Leases) };
}

/** Reports under a lease; the work is the test's. */
function reports(work: (id: string) => Promise<unknown>, ...decorators: readonly unknown[]) {
  class Reports {
    async write(id: string): Promise<unknown> {
      return await work(id);
    }
  }
  Injectable()(Reports);
  decorate(Reports, "write", ...decorators);
  return Reports;
}

it("runs a method in one replica at a time", async () => {
  const steps: string[] = [];
  const [inside, waiting, finish] = [latch(), latch(), latch()];
  const type = reports(
    async (id) => {
      steps.push(`begin ${id}`);
      inside.open();
      if (id === "first") await finish.opened;
      // Without a lease it begins while the first is inside.
      else waiting.open();
      steps.push(`end ${id} ${currentLease().lease.holder}`);
    },
    Lease("reports", { onWaiting: () => waiting.open() }),
  );
  const [one, two] = [await replica(type, "one"), await replica(type, "two")];
  const first = one.service.write("first");
  await inside.opened;
  const second = two.service.write("second");
  await waiting.opened;
  expect(steps).toEqual(["begin first"]);
  finish.open();
  await Promise.all([first, second]);
  expect(steps).toEqual(["begin first", "end first one", "begin second", "end second two"]);
});

it("names the lease after the arguments, and keeps what other decorators said of the method", async () => {
  const type = reports(
    async () => currentLease().lease.name,
    Lease((id: string) => `reports/${id}`),
    SetMetadata("route", "/reports"),
  );
  const { app, service } = await replica(type, "one");
  expect(await service.write("7")).toBe("reports/7");
  expect(app.get(Reflector).get("route", service.write)).toBe("/reports");
  expect(service.write.name).toBe("write");
});

it("aborts the signal of a method whose lease is lost, and rejects", async () => {
  const inside = latch();
  const type = reports(
    async () => {
      const { signal } = currentLease();
      inside.open();
      await once(signal, "abort");
      return "as if nothing had happened";
    },
    Lease("reports", { ttl: "6s" }),
  );
  const { service, leases } = await replica(type, "one");
  const writing = service.write("it").catch((error: unknown) => error);
  await inside.opened;
  await leases.revoke("reports");
  expect(await writing).toMatchObject({ code: "LEASE_LOST" });
});

it("runs once per period, whichever replica is first", async () => {
  const type = reports(
    async (id) => `${id}: ${currentLease().lease.holder}`,
    OncePer("nightly", { period: "1h" }),
  );
  const [one, two] = [await replica(type, "one"), await replica(type, "two")];
  expect(await one.service.write("it")).toBe("it: one");
  expect(await two.service.write("it")).toBeUndefined();
});

it("at shutdown asks running methods to stop, and releases their lease after they have ended", async () => {
  const [inside, finish] = [latch(), latch()];
  let stopped: AbortSignal | null = null;
  const type = reports(async () => {
    stopped = currentLease().signal;
    inside.open();
    await once(stopped, "abort");
    await finish.opened;
    currentLease().lease.assertHeld();
    return "ended in order";
  }, Lease("reports"));
  const [one, two] = [await replica(type, "one"), await replica(type, "two")];
  const writing = one.service.write("it");
  await inside.opened;
  const closed = one.app.close();
  await once(stopped ?? new AbortController().signal, "abort");
  expect((await two.leases.tryAcquire("reports")).ok).toBe(false);
  finish.open();
  expect(await writing).toBe("ended in order");
  await closed;
  expect((await two.leases.tryAcquire("reports")).ok).toBe(true);
  await expect(one.service.write("late")).rejects.toThrow("shuts down");
});

it("provides Leases from a URL", async () => {
  class App {}
  Module({ imports: [LeasesModule.forRoot("memory:")] })(App);
  const app = await (await Test.createTestingModule({ imports: [App] }).compile()).init();
  const leases = app.get(Leases);
  const lease = await leases.acquire("job");
  await app.close();
  expect(lease.state).toBe("released");
  await expect(leases.acquire("job")).rejects.toMatchObject({ code: "LEASES_CLOSED" });
});

it("says what is wrong", async () => {
  expect(() => LeasesModule.forRoot("")).toThrow(/url must be/);
  expect(() => LeasesModule.forRootAsync({} as never)).toThrow(/useFactory must be/);
  expect(() => Lease("")).toThrow(/name must be/);
  expect(() => currentLease()).toThrow(/outside of a method/);
  const type = reports(async () => undefined, Lease("reports"));
  await expect(new type().write("it")).rejects.toThrow(/import LeasesModule.forRoot/);
});
