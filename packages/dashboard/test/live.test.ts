// The live views in a real browser, against a real server with real leases.
import { describe, expect, it } from "vitest";
import { bearer, keyedServer } from "../../server/test/support/keys.ts";
import { type TestServer, tempFolder, testServer, until } from "../../server/test/support/server.ts";
import { axeViolations, scrollsSideways, useBrowser } from "./support/browser.ts";
import { grantMany, manyName } from "./support/many-leases.ts";

const openPage = useBrowser();
const LEASE = "/#/lease?tenant=default&name=reports%2Fnightly";

/** A lease that was held by three, waited for, denied and revoked. */
async function eventful({ lease, get }: TestServer): Promise<void> {
  const owner = (holder: string) => ({ name: "reports/nightly", holder, token: `token-${holder}` });
  await lease("acquire", { ...owner("a"), ttlMs: 60_000 });
  await lease("acquire", { ...owner("b"), ttlMs: 60_000 });
  const waited = lease("acquire", { ...owner("b"), ttlMs: 60_000, waitMs: 60_000 });
  await until("b waits", async () => (await get("/v1/queue?name=reports/nightly")).body.waiting === 1);
  await lease("release", owner("a"));
  await waited;
  await lease("handoff", { ...owner("b"), successor: "c", withinMs: 30_000 });
  await lease("acquire", { ...owner("c"), ttlMs: 60_000 });
}

describe("the table of leases", () => {
  it("teaches a first command while nothing is held, then shows leases as they come, change and go", async () => {
    const { url, lease, get } = await testServer();
    const { page, complaints } = await openPage(url);
    await page.getByRole("heading", { name: "Nothing is held yet" }).waitFor();
    await page.setViewportSize({ width: 375, height: 812 });
    expect(await scrollsSideways(page)).toBe(false);
    await page.setViewportSize({ width: 1_440, height: 900 });
    expect(await page.locator(".command code").first().textContent()).toContain("npx solehold run");
    const owner = { name: "reports/nightly", holder: "a", token: "t" };
    await lease("acquire", { ...owner, ttlMs: 60_000 });
    const row = page.locator(".table-window .row");
    await row.waitFor();
    expect(await row.locator("[data-cell=holder]").textContent()).toBe("a");
    expect(await row.locator("[data-cell=left]").textContent()).toMatch(/^(5\d s|1:00)$/);
    const waiting = lease("acquire", { name: "reports/nightly", holder: "b", token: "u", waitMs: 60_000 });
    await until("b waits", async () => (await get("/v1/queue?name=reports/nightly")).body.waiting === 1);
    await expect.poll(() => row.locator("[data-cell=waiters]").textContent()).toBe("1");
    await lease("release", owner);
    await waiting;
    await expect.poll(() => row.locator("[data-cell=holder]").textContent()).toBe("b");
    await lease("revoke", { name: "reports/nightly" });
    await expect.poll(() => row.count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("filters by key, holder, purpose, state and tenant, and the address shows the same to others", async () => {
    const { url, lease } = await testServer();
    await lease("acquire", { name: "job/1", holder: "worker-1", purpose: "StateWrite" });
    await lease("acquire", { name: "job/2", holder: "worker-2" });
    await lease("acquire", { name: "mail/out", holder: "mailer", token: "t" });
    await lease("acquire", { name: "elsewhere", holder: "x", tenant: "acme" });
    await lease("release", { name: "mail/out", holder: "mailer", token: "t" });
    const { page } = await openPage(url);
    const keys = () => page.locator(".table-window [data-cell=key]").allTextContents();
    const choice = (label: string) =>
      page.locator(".filters label", { has: page.getByText(label, { exact: true }) }).locator("select");
    await expect.poll(keys).toEqual(["job/1", "job/2"]);
    await page.getByLabel("Holder contains").fill("WORKER-2");
    await expect.poll(keys).toEqual(["job/2"]);
    await page.getByLabel("Holder contains").fill("");
    await choice("Purpose").selectOption("StateWrite");
    await expect.poll(keys).toEqual(["job/1"]);
    await choice("Purpose").selectOption("");
    await choice("State").selectOption("released");
    await expect.poll(keys).toEqual(["mail/out"]);
    await choice("State").selectOption("all");
    await page.getByLabel("Key begins with").fill("job/");
    await page.getByRole("button", { name: "Key" }).click();
    await expect.poll(keys).toEqual(["job/2", "job/1"]);
    const { page: another } = await openPage(page.url());
    await expect
      .poll(() => another.locator(".table-window [data-cell=key]").allTextContents())
      .toEqual(["job/2", "job/1"]);
    await another.goto(`${url}/#/leases?tenant=acme`);
    await expect
      .poll(() => another.locator(".table-window [data-cell=key]").allTextContents())
      .toEqual(["elsewhere"]);
    await Promise.all([page.close(), another.close()]);
  });

  it("opens a lease by the keyboard", async () => {
    const { url, lease } = await testServer();
    for (const name of ["a", "b", "c"]) await lease("acquire", { name, holder: "me" });
    const { page } = await openPage(url);
    await expect.poll(() => page.locator(".table-window .row").count()).toBe(3);
    await page.locator(".table-body").focus();
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await page.getByRole("heading", { level: 1, name: "b" }).waitFor();
    await page.close();
  });

  it("shows the slots of a name as one line, which opens to them", async () => {
    const { url, lease } = await testServer();
    const names = new Map<string, string>();
    for (const holder of ["a", "b", "c"]) {
      const owner = { holder, token: holder };
      const { body } = await lease("acquire", { name: "gpu", ...owner, slots: 3, ttlMs: 600_000 });
      names.set(holder, body.lease.name);
    }
    const { page } = await openPage(url);
    const cells = async (cell: string) =>
      await page.locator(`.table-window [data-cell=${cell}]`).allInnerTexts();
    await expect.poll(() => cells("state")).toEqual(["3 held"]);
    expect((await cells("holder")).join().split(", ").sort()).toEqual(["a", "b", "c"]);
    await lease("release", { name: names.get("b"), holder: "b", token: "b" });
    await expect.poll(() => cells("state")).toEqual(["2 of 3 held"]);
    await page.getByRole("button", { name: "gpu" }).click();
    await expect.poll(async () => (await cells("holder")).slice(1).sort()).toEqual(["a", "c"]);
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole("link", { name: /^slot/ }).last().click();
    await page.getByRole("heading", { level: 1, name: /^gpu#slot/ }).waitFor();
    await page.close();
  });

  // scripts/dashboard/frame-rate.mjs scrolls through 100,000 and says how fast.
  it("holds very many leases, of which only those that are seen are in the page", async () => {
    const count = process.env.SOLEHOLD_EFFORT === "full" ? 100_000 : 20_000;
    const { url, lease } = await testServer({ leasesPerTenant: "200000" });
    await grantMany(url, count);
    const { page, complaints } = await openPage(url);
    const shown = () => page.locator(".count").textContent();
    const all = count.toLocaleString("en");
    await expect.poll(shown).toBe(`${all} leases`);
    const rows = page.locator(".table-window .row");
    expect(await rows.count()).toBeLessThan(80);
    const [rowHeight, far] = [38, 0.73 * count];
    await page.locator(".table-body").evaluate((body, top) => {
      body.scrollTop = top;
    }, rowHeight * far);
    await page.getByText(manyName(far + 5), { exact: true }).waitFor();
    expect(await rows.count()).toBeLessThan(80);
    expect(await page.getByText(manyName(0), { exact: true }).count()).toBe(0);
    await page.getByLabel("Key begins with").fill("job/0099");
    await expect.poll(shown).toBe(`100 leases of ${all}`);
    await lease("revoke", { name: manyName(9_950) });
    await expect.poll(shown).toBe(`99 leases of ${all}`);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("says that it reconnects when the server goes, and goes on with the one that comes back", async () => {
    const store = `embedded:${await tempFolder()}`;
    const first = await testServer({ store });
    await first.lease("acquire", { name: "before", holder: "a", ttlMs: 600_000 });
    const { page } = await openPage(first.url);
    const keys = () => page.locator(".table-window [data-cell=key]").allTextContents();
    await expect.poll(keys).toEqual(["before"]);
    const { page: lease } = await openPage(`${first.url}/#/lease?tenant=default&name=before`);
    await lease.locator(".lease-now").getByText("held").waitFor();
    await first.server.close();
    for (const each of [page, lease]) await each.getByText("The connection was lost").waitFor();
    expect(await keys()).toEqual(["before"]);
    const { port } = new URL(first.url);
    const second = await testServer({ store, port });
    await second.lease("acquire", { name: "after", holder: "b", ttlMs: 600_000 });
    await expect.poll(keys).toEqual(["after", "before"]);
    await second.lease("revoke", { name: "before" });
    await expect.poll(keys).toEqual(["after"]);
    await lease.locator(".lease-now").getByText("revoked").waitFor();
    for (const each of [page, lease])
      await expect.poll(() => each.getByText("The connection was lost").count()).toBe(0);
    await Promise.all([page.close(), lease.close()]);
  });
});

describe("one lease", () => {
  it("shows who held it, how each tenure ended, and who waited, and goes on while one looks", async () => {
    const server = await testServer();
    await eventful(server);
    const { page, complaints } = await openPage(`${server.url}${LEASE}`);
    const tenures = () =>
      page
        .locator(".tenure")
        .evaluateAll((bars) => bars.map((bar) => bar.getAttribute("aria-label")?.replace(/ .*:\d\d,/, ",")));
    await expect.poll(tenures).toEqual(["a, released", "b, handed over", "c, still held"]);
    expect(await page.locator(".tl-span[data-end=granted]").count()).toBe(1);
    await page.locator(".decisions").getByText("denied: held by a for another").first().waitFor();
    await server.lease("revoke", { name: "reports/nightly" });
    await expect.poll(tenures).toEqual(["a, released", "b, handed over", "c, revoked"]);
    await page.locator(".lease-now").getByText("revoked").waitFor();
    await page.locator(".tenure").first().focus();
    expect(await page.locator(".facts.across").textContent()).toContain("Endedreleased");
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("answers why a job did not run, and keeps the question in the address", async () => {
    const server = await testServer();
    await eventful(server);
    const { page } = await openPage(`${server.url}${LEASE}`);
    await page.getByLabel("Holder (any when empty)").fill("nobody");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText("nobody did not ask for it within 5 min").waitFor();
    await page.getByLabel("Holder (any when empty)").fill("c");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText(/^c was granted it at .* and holds it: if its work does not run/).waitFor();
    const waits = server.lease("acquire", { name: "reports/nightly", holder: "d", waitMs: 60_000 });
    await until(
      "d waits",
      async () => (await server.get("/v1/queue?name=reports/nightly")).body.waiting === 1,
    );
    await page.getByLabel("Holder (any when empty)").fill("d");
    await page.getByRole("button", { name: "Ask" }).click();
    await page
      .getByText(/^d asked at .* It has waited for it since then, and is number 1 in the queue\.$/)
      .waitFor();
    await server.lease("release", { name: "reports/nightly", holder: "c", token: "token-c" });
    await waits;
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText(/^d was granted it at .* after waiting/).waitFor();
    const { page: another } = await openPage(page.url());
    await another.getByText(/^d was granted it at/).waitFor();
    await another.goto(`${server.url}${LEASE}&at=nonsense`);
    await another.getByText("It cannot be answered").waitFor();
    await Promise.all([page.close(), another.close()]);
  });
});

describe("activity", () => {
  it("counts denials by reason, and says so when the server is gone", async () => {
    const { url, lease, server } = await testServer();
    for (const holder of ["a", "b"]) await lease("acquire", { name: "job", holder, ttlMs: 600_000 });
    const { page } = await openPage(`${url}/#/activity`);
    const legend = (title: string) => page.locator(".chart", { hasText: title }).locator(".legend");
    await legend("Denials a minute").getByText("held by other").waitFor();
    await legend("Live leases")
      .getByText(/[1-9]\d* live leases/)
      .waitFor();
    await lease("acquire", { name: "job", holder: "c" });
    await page.locator(".events").getByText("c denied: held by a for another").waitFor();
    await server.close();
    await page.getByText("The connection was lost").waitFor();
    await page.close();
  });

  it("says which key the charts need, and shows the feed all the same", async () => {
    const { url, lease, keys } = await keyedServer([{}, { actions: ["read", "audit"] }]);
    const [all, looks = ""] = keys;
    await lease("acquire", { name: "job", holder: "a" }, bearer(all));
    const { page } = await openPage(`${url}/#/activity`);
    await page.getByLabel("API key", { exact: true }).fill(looks);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("The charts need a key that allows 'metrics' in all tenants").waitFor();
    await page.locator(".events").getByText("a granted with fence").waitFor();
    await page.close();
  });
});

describe("every view", () => {
  const VIEWS: readonly (readonly [path: string, complete: string])[] = [
    ["/", ".table-window .row"],
    [LEASE, ".tenure"],
    ["/#/activity", ".events li"],
    ["/#/audit", ".entries tbody tr"],
    ["/#/server", ".findings li"],
    ["/playground", ".verdict"],
  ];

  it.each([
    [1_440, "dark"],
    [375, "light"],
    ...(process.env.SOLEHOLD_EFFORT === "full"
      ? ([
          [1_440, "light"],
          [375, "dark"],
        ] as const)
      : []),
  ] as const)("has no violation of axe, at %i pixels, %s", async (width, colorScheme) => {
    const server = await testServer();
    await eventful(server);
    for (const [path, complete] of VIEWS) {
      const { page, complaints } = await openPage(`${server.url}${path}`, { width, colorScheme });
      await page.locator(complete).first().waitFor();
      expect([path, await axeViolations(page)]).toEqual([path, []]);
      expect([path, await scrollsSideways(page)]).toEqual([path, false]);
      expect([path, complaints]).toEqual([path, []]);
      await page.close();
    }
  });
});
