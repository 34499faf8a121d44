/** The writer against a driver of its own: what it answers when rows vanish again and again, and statements fail. */
import { describe, expect, it } from "vitest";
import type { LeaseRecord } from "../../../src/core/index.ts";
import { type Env, ManualEnv, realEnv } from "../../../src/env/index.ts";
import { type ConditionalWrite, StoreError } from "../../../src/store/index.ts";
import { Announcer } from "../../../src/stores/postgres/announcer.ts";
import type { Row, SqlDriver, Values } from "../../../src/stores/postgres/driver.ts";
import { tableNames } from "../../../src/stores/postgres/names.ts";
import { KnownRows } from "../../../src/stores/postgres/plain-ends.ts";
import { Reader } from "../../../src/stores/postgres/reader.ts";
import { type Statement, type Statements, statementsFor } from "../../../src/stores/postgres/statements.ts";
import { Writer, type WriterOptions } from "../../../src/stores/postgres/writer.ts";
import { key, record } from "./support.ts";

const VERSION = "6f1c1f0e-0000-4000-8000-000000000000";
const NEXT = "6f1c1f0e-0000-4000-8000-000000000001";
const TIME_US = "1750000000000123";
const names = tableNames();
const statements = statementsFor(names);

type Answer = (values: Values) => readonly Row[];

function failure(outcome: "not-applied" | "unknown", code: string): StoreError {
  return new StoreError("internal", "planted", { outcome, cause: { code } });
}

/** Answers each statement as told, and keeps the names of those that were sent. */
function writerOn(
  answers: Partial<Record<keyof Statements, Answer>>,
  options: {
    readonly env?: Env;
    readonly counts?: SqlDriver["counts"];
    readonly early?: WriterOptions["early"];
  } = {},
): { writer: Writer; reader: Reader; sent: string[]; paces: string[] } {
  const { env = realEnv, counts = "no", early = "no" } = options;
  const [sent, paces]: [string[], string[]] = [[], []];
  const query: SqlDriver["query"] = async (statement: Statement, values: Values, followUp) => {
    const found = Object.entries(statements).find(([, each]) => each === statement);
    const name = found?.[0] as keyof Statements;
    sent.push(name);
    const rows = answers[name]?.(values) ?? [];
    const next = followUp?.(rows) ?? null;
    if (next !== null) paces.push(next.pace);
    next?.message();
    return rows;
  };
  const driver: SqlDriver = {
    counts,
    confirms: early,
    query,
    script: async () => {},
    openSession: () => null,
    close: async () => {},
  };
  const announcer = new Announcer({ env, driver, statements });
  const known = new KnownRows();
  const reader = new Reader({ driver, statements, known, confirms: early });
  const writer = new Writer({ env, driver, statements, known, reader, announcer, early });
  return { writer, reader, sent, paces };
}

/** Every key is found with the version that all writes expect. */
const allThere: Answer = ([tenant, one, , two]) => {
  return [[TIME_US, rowOf(tenant, one, "ACTIVE"), rowOf(tenant, two, "ACTIVE")]];
};

const givenBack: Answer = ([tenant, name]) => [[TIME_US, rowOf(tenant, name, "RELEASED")]];

function rowOf(tenant: unknown, name: unknown, state: "ACTIVE" | "RELEASED"): string {
  const ended = state === "ACTIVE" ? "" : 1;
  return [VERSION, tenant, name ?? "", "h", "t", state, 0, 1, 1, 1, 1, ended, "", "n", '{"ttlMs":1}'].join(
    "\n",
  );
}

const vanishing: Answer = () => {
  throw failure("not-applied", "22012");
};

const updateOf = (name: string): ConditionalWrite => ({
  key: key(name),
  expected: VERSION,
  next: record(key(name)),
});

describe("a batch whose rows vanish between every look and the next statement", () => {
  it("is written one by one in the end", async () => {
    const { writer, sent } = writerOn({
      upsertMany: vanishing,
      readTwo: allThere,
      updateOne: () => [[TIME_US, "f"]],
    });
    const { results, storeTimeMs } = await writer.apply([updateOf("a"), updateOf("b")]);
    const version = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(results).toEqual([
      { kind: "applied", version },
      { kind: "applied", version },
    ]);
    expect(storeTimeMs).toBe(1_750_000_000_000);
    expect(sent).toEqual(["upsertMany", "readTwo", "upsertMany", "updateOne", "updateOne"]);
  });

  it("is not answered as not applied when one of them was and another failed", async () => {
    const { writer } = writerOn({
      upsertMany: vanishing,
      readTwo: allThere,
      updateOne: ([, name]) => {
        if (name === "a") return [[TIME_US, "f"]];
        throw failure("not-applied", "55P03");
      },
    });
    const { results } = await writer.apply([updateOf("a"), updateOf("b")]);
    expect(results).toMatchObject([{ kind: "applied" }, { kind: "unknown" }]);
  });

  it("is answered as unknown when nobody knows of one, and nothing is known to be done", async () => {
    const { writer } = writerOn({
      upsertMany: vanishing,
      readTwo: allThere,
      updateOne: ([, name]) => {
        throw failure(name === "a" ? "not-applied" : "unknown", "08006");
      },
    });
    await expect(writer.apply([updateOf("a"), updateOf("b")])).rejects.toMatchObject({ outcome: "unknown" });
  });

  it("was not done when the look in between fails", async () => {
    const { writer } = writerOn({
      upsertMany: vanishing,
      readTwo: () => {
        throw failure("unknown", "08006");
      },
    });
    await expect(writer.apply([updateOf("a"), updateOf("b")])).rejects.toMatchObject({
      outcome: "not-applied",
    });
  });
});

describe("a batch", () => {
  it("is sent in order of key, whatever order it came in", async () => {
    const rows: string[] = [];
    const { writer } = writerOn({
      upsertMany: ([literal]) => {
        rows.push(...Array.from((literal ?? "").matchAll(/default\n([^\n]+)/g), ([, name = ""]) => name));
        return ["b", "c"].map((name) => [TIME_US, "f", NEXT, "default", name]);
      },
      readOne: () => [[TIME_US]],
    });
    const { results } = await writer.apply([updateOf("c"), updateOf("a"), updateOf("b")]);
    expect(rows).toEqual(["a", "b", "c"]);
    expect(results.map(({ kind }) => kind)).toEqual(["applied", "conflict", "applied"]);
  });
});

describe("a lone write of which nobody needs to hear, just after the time was told", () => {
  const TIME_MS = 1_750_000_000_000;
  const unwatched: Answer = () => [[TIME_US, "f"]];
  const done: Answer = () => [[]];
  const create = (name: string): ConditionalWrite => ({ ...updateOf(name), expected: null });

  it("asks for no row, and tells no time until that is due again", async () => {
    const env = new ManualEnv();
    const answers = { updateOne: unwatched, updateUnheard: done, insertUnheard: done };
    const { writer, sent } = writerOn(answers, { env, counts: "yes" });
    const times: (number | null)[] = [];
    for (const write of [updateOf("a"), updateOf("a"), create("b")])
      times.push((await writer.apply([write])).storeTimeMs);
    await env.advance(19);
    times.push((await writer.apply([updateOf("a")])).storeTimeMs);
    await env.advance(1);
    times.push((await writer.apply([updateOf("a")])).storeTimeMs);
    expect(times).toEqual([TIME_MS, null, null, null, TIME_MS]);
    expect(sent).toEqual(["updateOne", "updateUnheard", "insertUnheard", "updateUnheard", "updateOne"]);
  });

  it("is sent as usual when it was not done, so that a conflict is shown with its time", async () => {
    const env = new ManualEnv();
    let isStale = false;
    const { writer, sent } = writerOn(
      { updateOne: () => (isStale ? [] : [[TIME_US, "f"]]), updateUnheard: () => [], readOne: allThere },
      { env, counts: "yes" },
    );
    await writer.apply([updateOf("a")]);
    expect(await writer.apply([updateOf("a")])).toMatchObject({
      storeTimeMs: TIME_MS,
      results: [{ kind: "applied" }],
    });
    isStale = true;
    expect(await writer.apply([updateOf("a")])).toMatchObject({
      storeTimeMs: TIME_MS,
      results: [{ kind: "conflict" }],
    });
    // After one that was in vain the next is not even tried.
    await writer.apply([updateOf("a")]);
    expect(sent).toEqual([
      ...["updateOne", "updateUnheard", "updateOne", "updateUnheard", "updateOne", "readOne"],
      ...["updateOne", "readOne"],
    ]);
  });

  it("is never sent that way while somebody listens, nor through a library that does not count, nor to delete", async () => {
    const watched = writerOn({ updateOne: () => [[TIME_US, "t"]] }, { counts: "yes" });
    const uncounted = writerOn({ updateOne: unwatched });
    for (const { writer } of [watched, uncounted])
      for (let round = 0; round < 3; round += 1) await writer.apply([updateOf("a")]);
    expect(new Set([...watched.sent, ...uncounted.sent])).toEqual(new Set(["updateOne"]));
    const { writer, sent } = writerOn({ updateOne: unwatched, deleteOne: unwatched }, { counts: "yes" });
    await writer.apply([updateOf("a")]);
    await writer.apply([{ ...updateOf("a"), next: null }]);
    expect(sent).toEqual(["updateOne", "deleteOne"]);
  });

  it("is announced later when nobody knows what became of it", async () => {
    const env = new ManualEnv();
    const lost: Answer = () => {
      throw failure("unknown", "08006");
    };
    const { writer, sent } = writerOn({ updateOne: unwatched, updateUnheard: lost }, { env, counts: "yes" });
    await writer.apply([updateOf("a")]);
    await expect(writer.apply([updateOf("a")])).rejects.toMatchObject({ outcome: "unknown" });
    await env.advance(2_000);
    expect(sent).toEqual(["updateOne", "updateUnheard", "notifyOne"]);
  });
});

describe("a lone end", () => {
  const answers = { insertOne: (): Row[] => [[TIME_US, "t"]], updateOne: (): Row[] => [[TIME_US, "t"]] };
  const held = record(key("job"));
  const ended: LeaseRecord = { ...held, state: "released", endedAtMs: 1, nonce: "n-2" };

  async function versionAfter(writer: Writer, write: Partial<ConditionalWrite>): Promise<string> {
    const { results } = await writer.apply([{ key: held.key, expected: null, next: held, ...write }]);
    const [result] = results;
    if (result?.kind !== "applied" || result.version === null) throw new Error(`${result?.kind}`);
    return result.version;
  }

  it("of a row that is known sends no more than what is different", async () => {
    const seen: Values[] = [];
    const endOne: Answer = (values) => {
      seen.push(values);
      return [[TIME_US, "t"]];
    };
    const { writer, sent } = writerOn({ ...answers, endOne });
    const expected = await versionAfter(writer, {});
    const version = await versionAfter(writer, { expected, next: ended, replaces: held });
    expect(sent).toEqual(["insertOne", "endOne"]);
    expect(seen).toEqual([["default", "job", expected, "RELEASED", "1", "n-2", version]]);
  });

  it.each([
    ["another field changes, too", { next: { ...ended, renewals: 1 }, replaces: held }],
    ["the row is not known", { next: ended }],
    ["it is no end", { next: { ...held, nonce: "n-3" }, replaces: held }],
  ])("is written whole when %s", async (_case, write) => {
    const { writer, sent } = writerOn(answers);
    const expected = await versionAfter(writer, {});
    await versionAfter(writer, { expected, ...write });
    expect(sent).toEqual(["insertOne", "updateOne"]);
  });

  it("is refused with a nonce that would be taken for two fields", async () => {
    const { writer } = writerOn(answers);
    const expected = await versionAfter(writer, {});
    const writing = versionAfter(writer, {
      expected,
      next: { ...ended, nonce: "a\nb" },
      replaces: held,
    });
    await expect(writing).rejects.toMatchObject({ kind: "config", outcome: "not-applied" });
  });
});

describe("the news of a write", () => {
  const released = (name: string): ConditionalWrite => ({
    ...updateOf(name),
    next: record(key(name), { state: "released" }),
  });

  it.each([
    ["a grant", [updateOf("a")], "soon"],
    ["grants", [updateOf("a"), updateOf("b")], "soon"],
    ["an end", [released("a")], "now"],
    ["grants and an end", [updateOf("a"), released("b"), updateOf("c")], "now"],
    ["a deletion", [{ ...updateOf("a"), next: null }], "now"],
  ])(
    "of %s leaves before its client goes on only if somebody may wait for it",
    async (_case, writes, pace) => {
      const watched: Answer = () => writes.map(({ key: { name } }) => [TIME_US, "t", NEXT, "default", name]);
      const answers = { updateOne: watched, upsertMany: watched, deleteOne: watched };
      const { writer, paces } = writerOn(answers);
      await writer.apply(writes);
      expect(paces).toEqual([pace]);
    },
  );
});

describe("an end for which somebody probably waits", () => {
  const watched: Answer = () => [[TIME_US, "t", "off", ""]];
  const held = record(key("job"));
  const released: LeaseRecord = { ...held, state: "released", endedAtMs: 1, nonce: "n-2" };
  const lost: Answer = () => {
    throw failure("unknown", "");
  };
  const grant: ConditionalWrite = { key: held.key, expected: null, next: held };
  const end = { key: held.key, expected: VERSION, next: released, replaces: held };

  it.each([
    ["of a known row", end, "endEarly"],
    ["of another row", { ...end, replaces: null }, "updateEarly"],
    ["by deletion", { ...end, next: null }, "deleteEarly"],
    ["that is a revocation", { ...end, next: { ...released, state: "revoked" } }, "endOne"],
    ["that is none", { ...end, next: { ...held, nonce: "n-3" } }, "updateOne"],
  ] as const)("is told with the write itself: one %s", async (_case, write, statement) => {
    const seen: Values[] = [];
    const noting: Answer = (values) => {
      seen.push(values);
      return [[TIME_US, "t", "off", ""]];
    };
    const { writer, sent } = writerOn({ insertOne: watched, [statement]: noting }, { early: "yes" });
    await writer.apply([grant]);
    expect(await writer.apply([write])).toMatchObject({ results: [{ kind: "applied" }] });
    expect(sent).toEqual(["insertOne", statement]);
    const payload = seen[0]?.at(-1) ?? "";
    expect(payload.startsWith("-\ndefault/job\n")).toBe(statement.endsWith("Early"));
    const parameters = new Set(statements[statement].text.match(/\$\d+/g));
    expect(seen[0]?.length).toBe(parameters.size);
  });

  it.each([
    ["nobody listens", { insertOne: (): Row[] => [[TIME_US, "f"]] }, "yes"],
    ["the server cannot tell when it is safe", { insertOne: watched }, "no"],
  ] as const)("is sent as usual when %s", async (_case, answers, early) => {
    const { writer, sent } = writerOn({ ...answers, endOne: watched }, { early });
    await writer.apply([grant]);
    await writer.apply([end]);
    expect(sent).toEqual(["insertOne", "endOne"]);
  });

  it("is sent as usual when news of other keys has to go along, and early again afterwards", async () => {
    const env = new ManualEnv();
    const answers = { insertOne: watched, updateOne: lost, endOne: watched, endEarly: watched };
    const { writer, sent } = writerOn(answers, { env, early: "yes" });
    await writer.apply([grant]);
    await expect(writer.apply([updateOf("other")])).rejects.toMatchObject({ outcome: "unknown" });
    await writer.apply([end]);
    await writer.apply([end]);
    expect(sent).toEqual(["insertOne", "updateOne", "endOne", "endEarly"]);
  });

  it("counts for whoever looks once it is safe, and a lease that is held counts at once", async () => {
    let isSafe = false;
    let isEnded = false;
    const confirm: Answer = () => {
      if (!isSafe) throw failure("unknown", "");
      return [[]];
    };
    const readOne: Answer = (values) => (isEnded ? givenBack(values) : allThere(values));
    const { reader, sent } = writerOn({ readOne, confirm }, { early: "yes" });
    await reader.read([held.key]);
    isEnded = true;
    await expect(reader.read([held.key])).rejects.toThrow("planted");
    expect((await reader.look([held.key])).records).toMatchObject([{ record: { state: "released" } }]);
    isSafe = true;
    expect((await reader.read([held.key])).records).toMatchObject([{ record: { state: "released" } }]);
    expect(sent).toEqual(["readOne", "readOne", "confirm", "readOne", "readOne", "confirm"]);
  });

  it("is announced later when nobody knows what became of it", async () => {
    const env = new ManualEnv();
    const { writer, sent } = writerOn({ insertOne: watched, endEarly: lost }, { env, early: "yes" });
    await writer.apply([grant]);
    await expect(writer.apply([end])).rejects.toMatchObject({ outcome: "unknown" });
    await env.advance(2_000);
    expect(sent).toEqual(["insertOne", "endEarly", "notifyOne"]);
  });
});
