/**
 * The wire format, once, for both sides: what a server encodes, its client decodes. HTTP and the stream carry the same
 * bodies.
 */
export * from "./fields.ts";
export * from "./lease.ts";
export * from "./outcome.ts";
export * from "./problem.ts";
export * from "./request.ts";
export * from "./sse.ts";
export * from "./stream.ts";
export * from "./watch-event.ts";
