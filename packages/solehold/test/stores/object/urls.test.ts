/** Wrong URLs and options: each has an error of one line that names what is wrong, and never a password. */
import { describe, expect, it } from "vitest";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { rejection } from "../records.ts";

const AWS = { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" };
const AZURE = { AZURE_STORAGE_ACCOUNT: "a", AZURE_STORAGE_KEY: "b" };

describe("a URL of object storage that is wrong names", () => {
  it.each<[string, string, Record<string, string>, RegExp]>([
    ["another scheme", "ftp://u:s3cret@bucket", {}, /must look like s3:.*got 'ftp:\/\/\*\*\*@bucket'/],
    ["no scheme", "bucket", {}, /must look like s3:/],
    ["no host", "https+etag://", {}, /must look like .*https\+etag:/],
    ["no bucket", "s3:///leases", AWS, /^s3: the URL must name a bucket/],
    ["no container", "azblob:///leases", AZURE, /^azblob: the URL must name a container/],
    [
      "an unknown option",
      "s3://bucket?regoin=x",
      AWS,
      /unknown option 'regoin': it may have endpoint and region and/,
    ],
    [
      "an unknown option",
      "azblob://box?region=x",
      AZURE,
      /unknown option 'region': it may have endpoint and/,
    ],
    [
      "an unknown option",
      "https+etag://host/?region=x",
      {},
      /unknown option 'region': it may have clockSkewMs/,
    ],
    ["credentials in the URL", "s3://a:s3cret@bucket", AWS, /must not carry credentials/],
    ["an empty region", "s3://bucket?region=", AWS, /^s3: region must be named.*AWS_REGION, got ''/],
    ["a password that is not encoded", "https+etag://u:s3cret%@host/", {}, /must have its password percent-/],
    ["a prefix that is not encoded", "s3://bucket/a%", AWS, /must have its prefix percent-encoded/],
    ["no credentials", "s3://bucket", {}, /set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/],
    [
      "no account",
      "azblob://box",
      {},
      /set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY or AZURE_STORAGE_SAS/,
    ],
    ["an endpoint without scheme", "s3://bucket?endpoint=host:80", AWS, /endpoint must look like https:/],
    ["a prefix that climbs", "s3://bucket/a/%2e%2e%2fb", AWS, /the prefix may have .* got 'a\/..\/b'/],
    [
      "a skew that is no number",
      "s3://bucket?clockSkewMs=2s",
      AWS,
      /clockSkewMs must be a whole number from 0/,
    ],
    ["an empty skew", "s3://bucket?clockSkewMs=", AWS, /clockSkewMs must be a whole number from 0/],
  ])("%s: %s", async (_what, url, variables, message) => {
    const error = await rejection(openObjectStore({ url, variables }));
    expect(error).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
    expect(error.message).toMatch(message);
    expect(error.message).not.toMatch(/s3cret|\n/);
  });
});

describe("an option of object storage that is wrong is named:", () => {
  const place = { kind: "https+etag", base: "http://127.0.0.1:9/", headers: {} };
  it.each<[string, unknown, RegExp]>([
    [
      "timeoutMs",
      { place, timeoutMs: 0 },
      /https\+etag: timeoutMs must be a whole number from 1 to 2147483647, got '0'/,
    ],
    [
      "clockSkewMs",
      { place, clockSkewMs: -1 },
      /clockSkewMs must be a whole number from 0 to 2147483647, got '-1'/,
    ],
    ["prefix", { place, prefix: "/a" }, /the prefix may have/],
    ["place.kind", { place: { kind: "gcs" } }, /place.kind must be "s3", "azblob" or "https\+etag"/],
    ["place", { place: undefined }, /place.kind must be/],
    ["a missing URL", {}, /the URL must look like/],
  ])("%s", async (_what, options, message) => {
    const error = await rejection(openObjectStore(options as never));
    expect(error).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
    expect(error.message).toMatch(message);
  });
});
