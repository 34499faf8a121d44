// One signed S3 request (AWS Signature Version 4, path style), enough to prove that a server keeps conditions.
import { createHash, createHmac } from "node:crypto";
import { http } from "./probes.mjs";

/**
 * @typedef {object} S3Place
 * @property {string} endpoint
 * @property {string} region
 * @property {string} accessKeyId
 * @property {string} secretAccessKey
 */

/**
 * @param {S3Place} place
 * @param {{ method: string, path: string, body?: string, headers?: Record<string, string>, timeoutMs?: number }} request
 * The path must need no escaping.
 */
export function s3Request(place, { method, path, body = "", headers = {}, timeoutMs = 15_000 }) {
  const timestamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const bodyHash = sha256(body);
  const { host } = new URL(place.endpoint);
  const signed = { host, "x-amz-content-sha256": bodyHash, "x-amz-date": timestamp };
  const names = Object.keys(signed).join(";");
  const lines = Object.entries(signed).map(([name, value]) => `${name}:${value}`);
  const canonical = [method, path, "", ...lines, "", names, bodyHash].join("\n");
  const scope = [timestamp.slice(0, 8), place.region, "s3", "aws4_request"];
  const toSign = ["AWS4-HMAC-SHA256", timestamp, scope.join("/"), sha256(canonical)].join("\n");
  /** @type {string | Buffer} */
  let key = `AWS4${place.secretAccessKey}`;
  for (const part of scope) key = createHmac("sha256", key).update(part).digest();
  const signature = createHmac("sha256", key).update(toSign).digest("hex");
  const credential = `${place.accessKeyId}/${scope.join("/")}`;
  const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`;
  return http(`${place.endpoint}${path}`, {
    method,
    headers: { ...headers, ...signed, authorization, "content-length": `${Buffer.byteLength(body)}` },
    body,
    timeoutMs,
  });
}

/** @param {string} text */
function sha256(text) {
  return createHash("sha256").update(text).digest("hex");
}
