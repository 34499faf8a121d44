/** Copies of the audit leave the machine: in order, at least once over failures and restarts, and what is missing is marked. */
import { readdir, readFile, rm } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { createLog, resolveConfig, startServer } from "@solehold/server";
import { FileAuditTrail, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AuditShipping } from "../../src/main/audit-shipping.ts";
import { ServerProcess } from "../support/process.ts";
import { ask, tempFolder, testServer, until } from "../support/server.ts";

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => await new Promise<void>((resolve) => void server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}

/** A collector that takes JSON lines, unless it is told to fail. */
async function collector() {
  const lines: string[] = [];
  const headers: (string | undefined)[] = [];
  const state = { mode: "takes" as "takes" | "fails" | "loses the answer" };
  const server = createHttpServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      headers.push(request.headers.authorization);
      if (state.mode !== "fails") lines.push(...body.trimEnd().split("\n"));
      if (state.mode === "loses the answer") request.socket.destroy();
      else response.writeHead(state.mode === "takes" ? 204 : 500).end();
    });
  });
  const port = await listening(server);
  const sequences = (): readonly number[] => lines.map((line) => JSON.parse(line).sequence);
  return { lines, headers, state, sequences, url: `http://127.0.0.1:${port}/in` };
}

const upTo = (last: number): readonly number[] => Array.from({ length: last }, (_, index) => index + 1);

describe("an audit that is sent on", () => {
  it("by HTTP arrives in order, with what a collector that failed had refused, and a secret only in its header", async () => {
    const { url, lines, headers, state, sequences } = await collector();
    state.mode = "fails";
    const server = await testServer({ auditShip: url.replace("//", "//me:S3CRET@") });
    for (const name of ["a", "b"]) await server.lease("acquire", { name, holder: "me" });
    await until("it was tried", () => headers.length > 1);
    expect((await server.get("/metrics")).text).toContain("\nsolehold_audit_unshipped 3\n");
    state.mode = "takes";
    await until("all arrived", () => lines.length === 3);
    expect(sequences()).toEqual(upTo(3));
    expect(JSON.parse(lines[1] ?? "")).toMatchObject({ action: "grant", key: "a", caller: "local" });
    expect(headers[0]).toBe(`Basic ${Buffer.from("me:S3CRET").toString("base64")}`);
    expect(server.logged.join("")).toMatch(/could not be sent on/);
    expect(server.logged.join("")).not.toContain("S3CRET");
  });

  it("comes again when the answer was lost: twice, and never not at all", async () => {
    const { url, lines, state, sequences } = await collector();
    state.mode = "loses the answer";
    const server = await testServer({ auditShip: url });
    await until("it was sent once", () => lines.length > 0);
    state.mode = "takes";
    await server.lease("acquire", { name: "a", holder: "me" });
    await until("all arrived", () => sequences().includes(2));
    expect(sequences().filter((sequence) => sequence === 1).length).toBeGreaterThan(1);
  });

  it("goes on after a kill where it was, and nothing is missing", async () => {
    const dataDir = await tempFolder();
    const path = join(await tempFolder(), "copy.jsonl");
    const sequences = async (): Promise<readonly number[]> =>
      (await readFile(path, "utf8").catch(() => ""))
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line).sequence);
    for (const round of ["a", "b", "c"]) {
      const server = await ServerProcess.start(dataDir, "--store", "memory:", "--audit-ship", `file:${path}`);
      for (let index = 0; index < 20; index += 1) {
        const body = JSON.stringify({ name: `${round}/${index}`, holder: "me" });
        const headers = { "content-type": "application/json" };
        await ask(`${server.url}/v1/leases/acquire`, { method: "POST", headers, body });
      }
      await server.kill();
    }
    const last = await ServerProcess.start(dataDir, "--store", "memory:", "--audit-ship", `file:${path}`);
    const { sequence } = (await ask(`${last.url}/v1/audit?limit=1`, {})).body.head;
    await until("all arrived", async () => (await sequences()).includes(sequence));
    expect([...new Set(await sequences())]).toEqual(upTo(sequence));
    await last.stop();
    const sent = await sequences();
    await ServerProcess.start(dataDir, "--store", "memory:", "--audit-ship", `file:${path}`);
    await until("its start arrived", async () => (await sequences()).length > sent.length);
    expect((await sequences())[sent.length]).toBe(Math.max(...sent) + 1);
  });

  it("to syslog is one message an entry, with its length", async () => {
    let text = "";
    const port = await listening(
      createServer((socket) =>
        socket.setEncoding("utf8").on("data", (data: string) => {
          text += data;
        }),
      ),
    );
    await testServer({ auditShip: `syslog://127.0.0.1:${port}` });
    await until("it arrived", () => text.includes('"action":"start"'));
    const [, length = "", message = ""] = /^(\d+) (.*)$/s.exec(text) ?? [];
    expect(Number(length)).toBe(Buffer.byteLength(message));
    expect(message).toMatch(/^<110>1 - \S+ solehold \d+ audit - \{"sequence":1,/);
  });

  it("to stdout is a line an entry, and comes again when it could not be written", async () => {
    const writes: string[] = [];
    const write = vi.spyOn(process.stdout, "write").mockImplementation((text, done) => {
      writes.push(String(text));
      (done as unknown as (error?: Error) => void)(writes.length === 1 ? new Error("EPIPE") : undefined);
      return true;
    });
    onTestFinished(() => write.mockRestore());
    const server = await testServer({ auditShip: "stdout:" });
    await until("it was tried", () => writes.length > 0);
    await server.lease("acquire", { name: "a", holder: "me" });
    await until("it arrived", () => writes.length > 1);
    await server.server.close();
    write.mockRestore();
    const taken = writes.slice(1).join("").trimEnd().split("\n");
    expect(taken.map((line) => JSON.parse(line).action)).toEqual(["start", "grant", "stop"]);
    expect(writes[0]).toContain('"action":"start"');
  });

  it("has a mark where entries were archived before their turn", async () => {
    const folder = await tempFolder();
    const trail = await FileAuditTrail.open({ folder, durability: "before-reply", segmentBytes: 1_024 });
    for (let at = 1; at <= 12; at += 1)
      await trail.append({
        ...{
          at,
          tenant: "t",
          key: "k",
          leaseId: "",
          action: "grant",
          allowed: true,
          reason: "OK_DECISION_COMPUTE",
        },
        ...{ reasonCode: 1, traceId: "", outcome: "applied" },
      });
    const [first = "", second = ""] = (await readdir(folder))
      .filter((name) => name.startsWith("audit-"))
      .sort();
    const from = Number(/\d+/.exec(second)?.[0]);
    await rm(join(folder, first));
    const { url, lines } = await collector();
    const log = createLog("silent");
    const cursorFile = join(folder, "cursor.json");
    const shipping = await AuditShipping.start({ env: realEnv, log, trail, target: url, cursorFile });
    await until("all arrived", () => shipping.unsent === 0);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      action: "audit-gap",
      detail: { from: 1, through: from - 1 },
    });
    expect(lines.slice(1).map((line) => JSON.parse(line).sequence)[0]).toBe(from);
    await shipping.close();
    await trail.close();
  });

  it("that leads nowhere is refused at the start", async () => {
    const flags = {
      port: "0",
      store: "memory:",
      audit: "memory",
      dataDir: await tempFolder(),
      logLevel: "silent",
    };
    for (const auditShip of ["ftp://x", "nonsense", "syslog:"])
      await expect(startServer(resolveConfig({ flags: { ...flags, auditShip } }))).rejects.toThrow(
        /--audit-ship must be stdout:/,
      );
  });
});
