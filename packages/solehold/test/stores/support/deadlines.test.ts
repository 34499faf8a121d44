/** One timer for many calls: each that is too late is told so, in its turn, and none that was answered. */
import { describe, expect, it } from "vitest";
import { ManualEnv, settle } from "../../../src/env/index.ts";
import { Deadlines } from "../../../src/stores/support/deadlines.ts";

interface Call {
  readonly answer: (value: string) => void;
  readonly fail: (error: Error) => void;
}

function begin(deadlines: Deadlines, name: string, ends: string[]): Call {
  let answer: Call["answer"] = () => undefined;
  let fail: Call["fail"] = () => undefined;
  const call = new Promise<string>((resolve, reject) => {
    answer = resolve;
    fail = reject;
  });
  deadlines
    .bound(call, () => new Error(`${name} too late`))
    .then(
      (value) => void ends.push(`${name} ${value}`),
      (error: Error) => void ends.push(error.message),
    );
  return { answer, fail };
}

describe("deadlines", () => {
  it("end every call that was not answered in time, the oldest first, and no other", async () => {
    const env = new ManualEnv();
    const deadlines = new Deadlines(env, 100);
    const ends: string[] = [];
    begin(deadlines, "first", ends);
    const second = begin(deadlines, "second", ends);
    await env.advance(40);
    const third = begin(deadlines, "third", ends);
    const fourth = begin(deadlines, "fourth", ends);
    second.answer("answered");
    await settle();
    await env.advance(60);
    expect(ends).toEqual(["second answered", "first too late"]);
    third.fail(new Error("third failed"));
    await settle();
    await env.advance(39);
    expect(ends).toEqual(["second answered", "first too late", "third failed"]);
    await env.advance(1);
    expect(ends.at(-1)).toBe("fourth too late");
    fourth.answer("late");
    await settle();
    expect(ends).toHaveLength(4);
  });

  it("of later calls hold, whatever became of those before", async () => {
    const env = new ManualEnv();
    const deadlines = new Deadlines(env, 100);
    const ends: string[] = [];
    const late = begin(deadlines, "late", ends);
    await env.advance(100);
    begin(deadlines, "next", ends);
    // Its place in the line is gone already; giving it up again must not touch who waits now.
    late.answer("after all");
    await settle();
    await env.advance(100);
    expect(ends).toEqual(["late too late", "next too late"]);
  });
});
