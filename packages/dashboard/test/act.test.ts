// What can be done from the dashboard, by whom, and what nobody else can make it do; in a real browser.
import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Locator } from "playwright-core";
import { describe, expect, it, onTestFinished } from "vitest";
import { bearer, keyedServer } from "../../server/test/support/keys.ts";
import { tempFolder, testServer, until } from "../../server/test/support/server.ts";
import { axeViolations, scrollsSideways, useBrowser } from "./support/browser.ts";

const openPage = useBrowser();
const CLI = join(import.meta.dirname, "../../cli/bin/solehold.js");
const pageOf = (url: string, name: string): string =>
  `${url}/#/lease?tenant=default&name=${encodeURIComponent(name)}`;

/** A lease name that is a command for a shell that does not take it as one word. */
const NASTY = "db/drop it's; touch hacked";

/** What a dialog shows as names and values. */
async function factsIn(dialog: Locator): Promise<Record<string, string>> {
  const facts = await dialog
    .locator(".facts > div")
    .evaluateAll((rows) => rows.map((row) => [...row.children].map(({ textContent }) => textContent ?? "")));
  return Object.fromEntries(facts);
}

/** A server on which `db/*` needs the approvals of all signers. mallory has a key, and is none of them. */
async function guardedServer(folder: string, names: readonly string[]) {
  const sh = (command: string) => promisify(execFile)("sh", ["-c", command], { cwd: folder });
  const made = [...names, "mallory"].map(async (name) => {
    const { stdout } = await sh(`node ${CLI} keygen --out ${name}.pem --signer ${name} --json`);
    return JSON.parse(stdout).signer;
  });
  const signers = (await Promise.all(made)).slice(0, names.length);
  const policyFile = join(folder, "policy.json");
  const rules = [{ pattern: "db/*", tier: "Dangerous", actions: ["revoke", "break"] }];
  const thresholds = { standard: 0, risky: 0, dangerous: names.length };
  await writeFile(policyFile, JSON.stringify({ signers, thresholds, rules }));
  return {
    ...(await testServer({ policyFile })),
    /** Runs a command that the page shows, as this signer. */
    sign: (shown: string, name: string) =>
      sh(
        shown
          .replace("npx solehold", `node ${CLI}`)
          .replace("NAME", name)
          .replace("KEY-FILE", `${name}.pem --yes`),
      ),
    approvals: async () => JSON.parse(await readFile(join(folder, "approvals.json"), "utf8")),
  };
}

describe("an action", () => {
  it("says what will happen, does nothing when it is cancelled, and is done when it is confirmed", async () => {
    const { url, lease, get } = await testServer();
    await lease("acquire", { name: "job", holder: "worker-1", ttlMs: 60_000 });
    const { page, complaints } = await openPage(pageOf(url, "job"));
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Revoke…" }).click();
    await dialog.getByText("The lease ends now. worker-1 learns it").waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect((await get("/v1/lease?name=job")).body.state).toBe("held");
    await page.getByRole("button", { name: "Revoke…" }).click();
    await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
    await page.locator(".lease-now").getByText("revoked").waitFor();
    expect((await get("/v1/lease?name=job")).body.state).toBe("revoked");
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("is for the grant that was seen: a later one is left alone", async () => {
    const { url, lease, get } = await testServer();
    const owner = { name: "job", holder: "a", token: "t" };
    await lease("acquire", { ...owner, ttlMs: 60_000 });
    const { page } = await openPage(pageOf(url, "job"));
    await page.getByRole("button", { name: "Revoke…" }).click();
    expect((await lease("release", owner)).status).toBe(200);
    await lease("acquire", { ...owner, holder: "b", token: "u", ttlMs: 60_000 });
    await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
    await page.getByRole("dialog").getByRole("alert").waitFor();
    expect((await get("/v1/lease?name=job")).body).toMatchObject({ state: "held", holder: "b" });
    await page.close();
  });

  it("breaks with a period, hands over and releases, with the token where it is the holder's", async () => {
    const { url, lease, get } = await testServer();
    await lease("acquire", { name: "job", holder: "a", token: "secret", ttlMs: 600_000 });
    const { page } = await openPage(pageOf(url, "job"));
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Break…" }).click();
    await dialog.getByLabel("Period in seconds").fill("120");
    await dialog.getByRole("button", { name: "Break", exact: true }).click();
    await page.locator(".lease-now").getByText("breaking").waitFor();
    await page.locator(".timeline .legend").getByText("asked back").waitFor();
    await page.getByRole("button", { name: "Release…" }).click();
    await dialog.getByLabel("Token of the grant").fill("wrong");
    await dialog.getByRole("button", { name: "Release", exact: true }).click();
    await dialog.getByRole("alert").waitFor();
    expect((await get("/v1/lease?name=job")).body.state).toBe("held");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Hand over…" }).click();
    await dialog.getByLabel("Token of the grant").fill("secret");
    await dialog.getByLabel("Successor", { exact: true }).fill("b");
    await dialog.getByRole("button", { name: "Hand over", exact: true }).click();
    await page.locator(".lease-now").getByText("handed over").waitFor();
    expect((await get("/v1/lease?name=job")).body.handoff.successor).toBe("b");
    await page.close();
  });

  it("on a dangerous key names what is missing, what each signer signs, and the command for it, word for word", async () => {
    const folder = await tempFolder();
    const { url, lease, get, sign, approvals } = await guardedServer(folder, ["alice", "bob"]);
    const { body } = await lease("acquire", { name: NASTY, holder: "ops", ttlMs: 600_000 });
    const { generation } = body.lease;
    const { page } = await openPage(pageOf(url, NASTY), { width: 375 });
    const dialog = page.getByRole("dialog");
    const confirm = dialog.getByRole("button", { name: "Revoke", exact: true });
    await page.getByRole("button", { name: "Revoke…" }).click();
    await confirm.click();
    await dialog.getByText("0 of 2 approvals").waitFor();
    expect([await axeViolations(page), await scrollsSideways(page)]).toEqual([[], false]);
    const [first = "", further = ""] = await dialog.locator(".command code").allTextContents();
    await sign(first, "alice");
    expect((await approvals()).request).toMatchObject({
      ...{ tenant: "default", key: NASTY, holder: "-", purpose: "-", tier: "Dangerous", ttlMs: 0 },
      action: `revoke@${generation}`,
    });
    expect(await factsIn(dialog)).toMatchObject({
      ...{ action: "revoke", tenant: "default", key: NASTY, tier: "Dangerous" },
      "only while": `the grant with fence ${generation} is current`,
    });
    const isOf = (signers: readonly string[]) => (approval: { signerId: string }) =>
      signers.includes(approval.signerId);
    const present = async (...signers: readonly string[]) => {
      const file = await approvals();
      const text = JSON.stringify({ ...file, approvals: file.approvals.filter(isOf(signers)) });
      await dialog.getByLabel("Approvals: the content of the file").fill(text);
      await confirm.click();
    };
    await present("alice");
    await dialog.getByText("1 of 2 approvals").waitFor();
    await sign(further, "mallory");
    await present("alice", "mallory");
    await dialog.getByText("mallory is not a signer of this quorum").waitFor();
    expect((await get(`/v1/lease?name=${encodeURIComponent(NASTY)}`)).body.state).toBe("held");
    await sign(further, "bob");
    await present("alice", "bob");
    await page.locator(".lease-now").getByText("revoked").waitFor();
    const files = ["alice.pem", "approvals.json", "bob.pem", "mallory.pem", "policy.json"];
    expect((await readdir(folder)).sort()).toEqual(files);
    await page.close();
  });

  it("has the period of a break signed", async () => {
    const folder = await tempFolder();
    const { url, lease, sign, approvals } = await guardedServer(folder, ["alice"]);
    await lease("acquire", { name: "db/main", holder: "ops", ttlMs: 600_000, tenant: "acme" });
    const { page } = await openPage(`${url}/#/lease?tenant=acme&name=db/main`);
    const dialog = page.getByRole("dialog");
    const confirm = dialog.getByRole("button", { name: "Break", exact: true });
    await page.getByRole("button", { name: "Break…" }).click();
    await dialog.getByLabel("Period in seconds").fill("90");
    await confirm.click();
    await dialog.getByText("0 of 1 approvals").waitFor();
    expect(await factsIn(dialog)).toMatchObject({ action: "break", tenant: "acme", period: "1 min 30 s" });
    await sign((await dialog.locator(".command code").textContent()) ?? "", "alice");
    await dialog.getByLabel("Approvals: the content of the file").fill(JSON.stringify(await approvals()));
    await dialog.getByLabel("Period in seconds").fill("91");
    await confirm.click();
    await dialog.getByText("alice: the signature does not sign this request").waitFor();
    await dialog.getByLabel("Period in seconds").fill("90");
    await confirm.click();
    await page.locator(".lease-now").getByText("breaking").waitFor();
    await page.close();
  });
});

describe("a damaged record", () => {
  it("is repaired by whoever may, after it was said what that means, and its key works again", async () => {
    const folder = await tempFolder();
    const { url, lease, get, keys } = await keyedServer(
      [{ name: "all" }, { name: "looks", actions: ["read", "audit"] }],
      { store: `file:${folder}` },
    );
    const [all = "", looks = ""] = keys;
    await lease("acquire", { name: "db/main", holder: "worker-1", ttlMs: 60_000 }, bearer(all));
    const { generation } = (await get("/v1/lease?name=db/main", bearer(all))).body;
    await writeFile(join(folder, "leases/db%2Fmain.lease.json"), "no record at all");
    const enter = async (key: string) => {
      const opened = await openPage(pageOf(url, "db/main"));
      await opened.page.getByLabel("API key", { exact: true }).fill(key);
      await opened.page.getByRole("button", { name: "Continue" }).click();
      await opened.page.getByText("Its record is damaged, so nobody can acquire it").waitFor();
      return opened.page;
    };
    const looking = await enter(looks);
    expect(await looking.getByRole("button", { name: "Repair…" }).isDisabled()).toBe(true);
    await looking.close();
    const page = await enter(all);
    expect(await axeViolations(page)).toEqual([]);
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Repair…" }).click();
    await dialog
      .getByText("What it said is lost: make sure first that its last holder has stopped")
      .waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect((await get("/v1/lease?name=db/main", bearer(all))).body.reason).toBe("RECORD_CORRUPT");
    await page.getByRole("button", { name: "Repair…" }).click();
    await dialog.getByRole("button", { name: "Repair", exact: true }).click();
    await page.locator(".lease-now").getByText("released").waitFor();
    const granted = await lease(
      "acquire",
      { name: "db/main", holder: "worker-2", ttlMs: 60_000 },
      bearer(all),
    );
    expect(granted.status).toBe(200);
    expect(BigInt(granted.body.lease.generation)).toBeGreaterThan(BigInt(generation));
    await page.locator(".lease-now").getByText("worker-2").waitFor();
    await page.close();
  });
});

describe("the server view", () => {
  it("examines the store as the command line's doctor does, and a lease names its home", async () => {
    const { url, lease, get } = await testServer();
    await lease("acquire", { name: "job", holder: "a", ttlMs: 60_000 });
    const { page, complaints } = await openPage(`${url}/#/server`);
    await page.getByText("the store's clock was not seen to jump").waitFor();
    expect(await factsIn(page.locator("main"))).toMatchObject({
      "survives a crash": "no",
      "clock jumps": "0",
      "waiting for the disk": "0",
    });
    await page.getByText("home of 100 % of all keys (this one answers)").waitFor();
    await page.getByRole("button", { name: "Examine the store" }).click();
    await page.getByText("8 asked at once for one key, one got it").waitFor();
    await page.getByText(/^fence \d+ follows \d+ after a release$/).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    expect((await get("/v1/leases?prefix=solehold-doctor/")).body.leases).toEqual([]);
    const { self } = (await get("/v1/replicas?name=job")).body;
    await page.goto(pageOf(url, "job"));
    await page.getByText(`Home of this key: ${self}, this server`).waitFor();
    expect(complaints).toEqual([]);
    await page.close();
  });
});

describe("several servers over one store", () => {
  it("share the keys, and a lease's page leads to the server where its waiters are", async () => {
    const store = `file:${await tempFolder()}`;
    const [a, b] = await Promise.all(["a", "b"].map((nodeId) => testServer({ store, nodeId })));
    if (a === undefined || b === undefined) throw new Error("both were started");
    const homeOf = async (name: string): Promise<string> =>
      (await a.get(`/v1/replicas?name=${name}`)).body.home;
    await until("each knows the other", async () => {
      const known = await Promise.all([a, b].map(({ get }) => get("/v1/replicas")));
      return known.every(({ body }) => body.replicas.length === 2);
    });
    const names = Array.from({ length: 64 }, (_, index) => `job-${index}`);
    const homes = await Promise.all(names.map(homeOf));
    const name = names[homes.indexOf("b")] ?? "";
    await b.lease("acquire", { name, holder: "worker-1", ttlMs: 600_000 });
    const waited = b.lease("acquire", { name, holder: "worker-2", waitMs: 300_000 });
    await until("it waits", async () => (await b.get(`/v1/queue?name=${name}`)).body.waiting === 1);
    const { page } = await openPage(`${a.url}/#/server`);
    await page.getByText(`${b.url}, home of 50 % of all keys`).waitFor();
    await page.goto(pageOf(a.url, name));
    await page.getByText("Home of this key: b. Its waiters are there").waitFor();
    expect(await page.locator(".waiters").count()).toBe(0);
    await page.getByRole("link", { name: "look" }).click();
    await page.waitForURL(pageOf(b.url, name));
    await page.locator(".waiters").getByText("worker-2").waitFor();
    await page.getByText("Home of this key: b, this server").waitFor();
    await page.close();
    await b.server.close();
    await waited;
  });
});

describe("the audit", () => {
  it("is proven, and after somebody changed an entry on the disk it names the first bad one", async () => {
    const { url, lease, dataDir } = await testServer({ audit: "before-reply" });
    for (const holder of ["a", "b", "c"]) await lease("acquire", { name: "job", holder });
    const { page } = await openPage(`${url}/#/audit`);
    const verify = page.getByRole("button", { name: "Verify chain" });
    await verify.click();
    await page.getByText(/^All \d+ entries are proven/).waitFor();
    const folder = join(dataDir, "audit");
    const [segment = ""] = (await readdir(folder)).filter((name) => name.startsWith("audit-"));
    const text = await readFile(join(folder, segment), "utf8");
    const lines = text.split("\n");
    const tampered = lines.findIndex((line) => line.includes('"holder":"b"'));
    const { sequence } = JSON.parse(lines[tampered] ?? "");
    await writeFile(join(folder, segment), text.replace('"holder":"b"', '"holder":"x"'));
    await verify.click();
    await page.getByText(`Entry ${sequence} is not proven`).waitFor();
    await page.getByRole("button", { name: `Show entry ${sequence}` }).click();
    await page.getByText(`Entry ${sequence} and those beside it`).waitFor();
    await expect
      .poll(() => page.locator("tr[data-wrong=true]").textContent())
      .toMatch(RegExp(`^${sequence}\\d\\d:`));
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole("button", { name: "Back to the search" }).click();
    await page.getByText("3 entries, the newest first").waitFor();
    await page.close();
  });

  it("is searched, and exported as lines that the playground opens", async () => {
    const { url, lease } = await testServer();
    await lease("acquire", { name: "job", holder: "a", ttlMs: 60_000 });
    await lease("acquire", { name: "job", holder: "b" });
    await lease("acquire", { name: "other", holder: "c" });
    const { page } = await openPage(`${url}/#/audit?name=job&verdict=denied`);
    await expect.poll(() => page.locator(".entries tbody tr").count()).toBe(1);
    await page.getByText("denied: held by a for another").waitFor();
    await page.getByLabel("Tenant").fill("acme");
    await page.getByLabel("Tenant").press("Enter");
    await expect.poll(() => page.locator(".count").textContent()).toBe("No entry matches");
    await page.goto(`${url}/#/audit?name=job`);
    await expect.poll(() => page.locator(".entries tbody tr").count()).toBe(2);
    await page.getByLabel("Until").fill("2020-02-29T23:59");
    await expect.poll(() => page.locator(".count").textContent()).toBe("No entry matches");
    await page.getByLabel("Until").fill("");
    await page.getByLabel("From").fill("2020-02-29T23:59");
    await page.waitForURL(/from=2020-0/);
    await expect.poll(() => page.locator(".entries tbody tr").count()).toBe(2);
    expect(await page.getByLabel("From").inputValue()).toBe("2020-02-29T23:59");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export" }).click(),
    ]);
    const saved = join(await tempFolder(), "audit.jsonl");
    await download.saveAs(saved);
    await page.goto(`${url}/playground#/file`);
    await page.locator("input[type=file]").setInputFiles(saved);
    await page.locator(".belief .bar").waitFor();
    await page.close();
  });
});

it("an export has all that matches, however many pages that is", async () => {
  const { url, lease } = await testServer({ audit: "background" });
  const asked = Array.from({ length: 1_150 }, (_, index) => ({ name: "job", holder: `h${index}` }));
  for (let first = 0; first < asked.length; first += 50)
    await Promise.all(asked.slice(first, first + 50).map((body) => lease("acquire", body)));
  const { page } = await openPage(`${url}/#/audit?name=job&verdict=denied`);
  await page.locator(".entries tbody tr").first().waitFor();
  const [table, more] = [page.locator(".entries"), page.getByRole("button", { name: "Show more" })];
  const [above, below] = [await table.boundingBox(), await more.boundingBox()];
  expect((above?.y ?? 0) + (above?.height ?? 0)).toBeLessThanOrEqual(below?.y ?? 0);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Export" }).click(),
  ]);
  const saved = join(await tempFolder(), "audit.jsonl");
  await download.saveAs(saved);
  const lines = (await readFile(saved, "utf8")).trimEnd().split("\n");
  const entries = lines.map((line): { sequence: number; allowed: boolean } => JSON.parse(line));
  expect(entries).toHaveLength(1_149);
  expect(entries.every(({ allowed }) => !allowed)).toBe(true);
  expect(entries.map(({ sequence }) => sequence)).toEqual(
    entries.map(({ sequence }) => sequence).sort((a, b) => a - b),
  );
  await page.getByText("1,149 entries exported").waitFor();
  // Nor do they hide who holds it.
  await page.goto(`${pageOf(url, "job")}&holder=nobody`);
  await expect.poll(() => page.locator(".tenure").count()).toBe(1);
  await page.getByText(/nobody did not ask for it .* h0 held it then\.$/).waitFor();
  await page.close();
});

describe("where API keys are on", () => {
  it("asks for one, says when it is wrong, keeps it in the tab alone, and forgets it", async () => {
    const { url, lease, keys } = await keyedServer([{ name: "all" }, { name: "looks", actions: ["read"] }]);
    const [all = "", looks = ""] = keys;
    await lease("acquire", { name: "job", holder: "a", ttlMs: 60_000 }, bearer(all));
    const { page } = await openPage(url, { width: 375 });
    const field = page.getByLabel("API key", { exact: true });
    await field.fill("shk_wrong");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("The server does not know this key").waitFor();
    expect(await axeViolations(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    await field.fill(looks);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.locator(".table-window .row").click();
    expect(await page.getByRole("button", { name: "Revoke…" }).isDisabled()).toBe(true);
    await page.getByText("This key does not allow break, revoke, release, handoff.").waitFor();
    await page.getByText("This key does not allow the audit").waitFor();
    expect(await page.evaluate(() => [localStorage.length, document.cookie])).toEqual([0, ""]);
    expect(page.url()).not.toContain(looks);
    await page.getByRole("button", { name: "Leave" }).click();
    await field.fill(all);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("button", { name: "Revoke…" }).waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Revoke…" }).isEnabled()).toBe(true);
    await page.close();
  });
});

describe("what others chose or made", () => {
  it("is text: HTML in keys, holders and notes is not run", async () => {
    const { url, lease } = await testServer();
    const html = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>";
    await lease("acquire", { name: html, holder: `h${html}`, note: html, ttlMs: 60_000 });
    await lease("acquire", { name: html, holder: `i${html}` });
    for (const path of ["/", pageOf("", html), "/#/activity", "/#/audit"]) {
      const { page, complaints } = await openPage(`${url}${path}`);
      await page.getByText(html).first().waitFor();
      expect(await page.evaluate(() => [Reflect.get(window, "hacked"), document.images.length])).toEqual([
        undefined,
        0,
      ]);
      expect([path, complaints]).toEqual([path, []]);
      await page.close();
    }
  });

  it("cannot act: a page of another origin in the same browser changes nothing", async () => {
    const { url, lease, get } = await testServer();
    await lease("acquire", { name: "job", holder: "a", ttlMs: 60_000 });
    const attack = `<form id=f method=post enctype="text/plain" action="${url}/v1/leases/revoke"><input name='{"name":"job","x":"' value='"}'></form>`;
    const other = createServer((_request, response) =>
      response.writeHead(200, { "content-type": "text/html" }).end(attack),
    );
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void other.close());
    const { page } = await openPage(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
    const results = await page.evaluate(async (target) => {
      const body = JSON.stringify({ name: "job" });
      const json = { "content-type": "application/json" };
      const attempts: RequestInit[] = [
        { method: "POST", body, headers: json },
        { method: "POST", body, mode: "no-cors" },
        {
          method: "POST",
          body,
          mode: "no-cors",
          credentials: "include",
          headers: { "content-type": "text/plain" },
        },
      ];
      const ended = attempts.map((attempt) =>
        fetch(`${target}/v1/leases/revoke`, attempt).then(
          ({ type }) => type,
          () => "refused",
        ),
      );
      return await Promise.all(ended);
    }, url);
    expect(results).toEqual(["refused", "opaque", "opaque"]);
    const [answer] = await Promise.all([
      page.waitForResponse(`${url}/v1/leases/revoke`),
      page.evaluate(() => (document.getElementById("f") as HTMLFormElement).submit()),
    ]);
    expect(answer.status()).toBeGreaterThanOrEqual(400);
    expect((await get("/v1/lease?name=job")).body.state).toBe("held");
    await page.close();
  });
});
