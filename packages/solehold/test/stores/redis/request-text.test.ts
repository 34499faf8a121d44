/** The text of a request is what a server reads as these very arguments, or there is none. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { requestText } from "../../../src/stores/redis/request-text.ts";

/** What a server reads: every length counts bytes. */
function partsOf(text: string): string[] {
  const bytes = Buffer.from(text, "utf8");
  const parts: string[] = [];
  let at = bytes.indexOf("\r\n") + 2;
  const count = Number(bytes.subarray(1, at - 2).toString());
  while (at < bytes.length) {
    const end = bytes.indexOf("\r\n", at);
    const length = Number(bytes.subarray(at + 1, end).toString());
    parts.push(bytes.subarray(end + 2, end + 2 + length).toString());
    at = end + 2 + length + 2;
  }
  expect(parts).toHaveLength(count);
  return parts;
}

describe("the text of a request", () => {
  it("is read as the arguments that it was made of, line breaks and all", () => {
    const anything = fc.array(fc.oneof(fc.string(), fc.constantFrom("", "\r\n", "$3\r\nabc\r\n", "*1\r\n")));
    fc.assert(
      fc.property(anything, (args) => {
        const text = requestText("evalsha", args);
        if (text !== null) expect(partsOf(text)).toEqual(["evalsha", ...args]);
      }),
    );
  });

  it("is left to the client where a character is more than a byte, or an argument no text", () => {
    expect(requestText("evalsha", ["é"])).toBeNull();
    expect(requestText("evalsha", ["plain", "名前"])).toBeNull();
    expect(requestText("evalsha", [Buffer.from("plain")])).toBeNull();
    expect(requestText("evalsha", ["plain"])).toBe("*2\r\n$7\r\nevalsha\r\n$5\r\nplain\r\n");
  });
});
