/** Values as people read them. */
import type { Tone } from "../ui/components.tsx";
import type { Lease } from "./data/api.ts";
import { localMs, storeMsAt } from "./data/store-clock.ts";

const TONES = {
  held: "good",
  grace: "warn",
  breaking: "warn",
  expired: "warn",
  released: "ended",
  revoked: "bad",
  "handed over": "accent",
} as const;
export type Status = keyof typeof TONES;

export function toneOf(status: Status): Tone {
  return TONES[status];
}

/** In one word; a lease that ran out since it arrived is expired. */
export function statusOf(lease: Lease, nowMs: number): Status {
  if (lease.state === "revoked") return "revoked";
  if (lease.state === "released") return lease.handoff === null ? "released" : "handed over";
  if (nowMs >= lease.expiresAtMs) return "expired";
  if (lease.breakAtMs !== null) return "breaking";
  return lease.phase === "grace" ? "grace" : "held";
}

export function isLive(lease: Lease, nowMs: number): boolean {
  return lease.state === "held" && nowMs < lease.expiresAtMs;
}

/** Without the zeros that make fences sort as text. */
export function shortFence(fence: string): string {
  return fence.replace(/^0+(?=\d)/, "");
}

/** What is left, for a column: "4.2 s", "58 s", "12:05", "3:12:05". */
export function countdown(ms: number): string {
  if (ms <= 0) return "0 s";
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const two = (value: number): string => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

const TIME = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** An instant of the store's clock on the reader's: the time, with the day where it is not today. */
export function timeOf(storeMs: number): string {
  const at = new Date(localMs(storeMs));
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? TIME.format(at) : `${DAY.format(at)}, ${TIME.format(at)}`;
}

export function isoOf(storeMs: number): string {
  return new Date(storeMs).toISOString();
}

/** As an input of the type datetime-local shows an instant of the store's clock: on the reader's clock, without a zone. */
export function timeInput(storeMs: number): string {
  // An address may say anything.
  if (Number.isNaN(storeMs)) return "";
  const hereMs = Math.round(localMs(storeMs) / 1_000) * 1_000;
  return new Date(hereMs - new Date(hereMs).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** What such an input says, as an address carries it: an instant of the store's clock; empty for none. */
export function isoOfInput(text: string): string {
  return text === "" ? "" : isoOf(storeMsAt(new Date(text).getTime()));
}

/** As one word of a shell's command line: what others chose as a name must not become a command when it is pasted. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./][\w@%+=:,./-]*$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The code of a reason as a label: "held by other". */
export function reasonLabel(reason: string): string {
  return reason
    .replace(/^LEASE_/, "")
    .replaceAll("_", " ")
    .toLowerCase();
}

const NUMBER = new Intl.NumberFormat("en-US");

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${NUMBER.format(count)} ${count === 1 ? one : many}`;
}

export function grouped(count: number): string {
  return NUMBER.format(count);
}
