// The examples of --help, carried out as printed, one after another as a person would, against the embedded store
// and against a server. Those that run another program or never end are in the tests of run, elect and watch.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMMANDS } from "../src/registry.ts";
import { run } from "./support/fake-io.ts";
import { type Pausable, startServer } from "./support/server-process.ts";
import { temporaryFolder } from "./support/temporary.ts";

const printed = new Set(COMMANDS.flatMap(({ examples }) => Object.keys(examples)));

/** What comes before an example so that it has something to do is not an example itself. */
interface Step {
  readonly line: string;
  readonly before?: string;
  /** What the example must say. */
  readonly says: RegExp;
  readonly only?: "server";
}

const STORY: readonly Step[] = [
  { line: "solehold acquire db/main --ttl 5m", says: /^db\/main is yours for 4m\d+s/ },
  { line: "SOLEHOLD_TOKEN=... solehold renew db/main --ttl 5m", says: /is renewed for 5m00s/ },
  { line: "solehold get db/main", says: /^key +db\/main\n/ },
  { line: "solehold get db/main --json | jq -r .fence", says: /"fence":"0{23}\d{16}"/ },
  { line: "solehold break db/main --period 30s", says: /^db\/main ends within 30s/ },
  { line: "solehold handoff db/main --to replica-2 --within 30s", says: /reserved for replica-2, for 30s/ },
  { line: "SOLEHOLD_TOKEN=... solehold release db/main", says: /^db\/main is released/ },
  {
    before: "solehold acquire db/main --holder replica-2 --purpose StateWrite",
    line: "./rebuild.sh && solehold resume db/main",
    says: /^db\/main may be used again/,
  },
  {
    line: "solehold use db/main --purpose StateWrite && ./write-state.sh",
    says: /may be used for StateWrite/,
  },
  {
    line: "export SOLEHOLD_TOKEN=$(solehold acquire job --json | jq -r .token)",
    says: /"token":"[\w-]{22}"/,
  },
  { before: "solehold acquire job/7", line: "solehold ls job/", says: /^KEY .*\njob\/7 / },
  { line: "solehold ls --all --json | jq '.leases[].key'", says: /"key":"db\/main".*"key":"job\/7"/ },
  { line: "solehold revoke job/7", says: /^job\/7 is revoked; replica-2 may still believe in it for \d+s/ },
  { line: "solehold audit ls --key db/main", says: /allowed/, only: "server" },
  { line: "solehold audit verify", says: /entries are proven/, only: "server" },
  { line: "solehold doctor", says: /^ok +exclusion/m },
  { line: "solehold coordinator select lease-1 --nodes a=10,b=5,c=8", says: /\S/ },
  { line: "solehold coordinator select lease-1 --nodes a=10,b=5,c=8 --all --json", says: /"ranked":\[/ },
  { line: "solehold schema postgres | psql app", says: /create table/ },
  { line: "solehold version --json", says: /"solehold":"\d/ },
  { line: "solehold help run", says: /^Run a command while holding a lease/ },
];

/** The words of the call itself: without what a shell does around it. */
function wordsOf(line: string): readonly string[] {
  const [call = ""] = line.slice(line.indexOf("solehold ")).split(/ [|>&]|\)/);
  return (call.match(/'[^']*'|\S+/g) ?? []).slice(1);
}

async function tell(url: string, where: "store" | "server"): Promise<void> {
  const env: Record<string, string> = { SOLEHOLD_URL: url, SOLEHOLD_HOLDER: "me" };
  for (const { before, line, says, only } of STORY) {
    if (only !== undefined && only !== where) continue;
    expect(printed).toContain(line);
    const lines = before === undefined ? [line] : [before, line];
    for (const each of lines) {
      const { code, stdout, stderr } = await run(wordsOf(each), { env });
      expect([each, code, stderr]).toEqual([each, 0, ""]);
      if (each === line) expect(stdout, line).toMatch(says);
      const [, token] = /SOLEHOLD_TOKEN=(\S+)|"token":"([^"]+)"/.exec(stdout) ?? [];
      const [, holder] = /^ +holder +(\S+)$/m.exec(stdout) ?? [];
      if (token !== undefined) env.SOLEHOLD_TOKEN = token;
      if (holder !== undefined) env.SOLEHOLD_HOLDER = holder;
    }
  }
}

describe("the examples of --help", () => {
  let server: Pausable;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(async () => await server.stop());

  it("work as printed over the embedded store", async () => {
    await tell(`embedded:${temporaryFolder()}/data`, "store");
  });

  it("work as printed over a server", async () => {
    await tell(server.url, "server");
  });
});
