/** A memory store whose clients stand in lines, and the mistakes that can be planted in them. */
import { keyId, type LeaseKey } from "../../src/core/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  MemoryStore,
  type QueueTicket,
  type StoreEvent,
} from "../../src/store/index.ts";

export const LINE_BUGS = {
  "tells all of a release":
    "a release is told to the first in line, with what stands there now, and to nobody else",
  "tells nobody of a release":
    "a release is told to the first in line, with what stands there now, and to nobody else",
  "tells the last instead of the first":
    "a release is told to the first in line, with what stands there now, and to nobody else",
  "tells at once although the key is held":
    "a release is told to the first in line, with what stands there now, and to nobody else",
  "shows the record before":
    "a release is told to the first in line, with what stands there now, and to nobody else",
  "waits for one who left before its turn": "who leaves before its turn is passed over",
  "tells one who has left": "who leaves before its turn is passed over",
  "forgets the turn of one who left": "who was told and leaves without it passes the turn on",
  "forgets the turn of one who closed": "who closes its place when it was told passes the turn on",
  "passes the turn on when somebody is served":
    "the next in line is told when the first was served and gives the key back",
  "sends losers to the end": "who lost its turn to a newcomer comes before those who stood behind it",
  "takes to enter again for a new place": "to enter again keeps the place, and is no turn",
  "leaves who finds it free in the line": "who enters the line for a key that nobody holds is told at once",
  "tells of every key":
    "a release is told to the first in line, with what stands there now, and to nobody else",
  "deletes a key that was passed on": "a line writes nothing to its key",
} as const;

export type LineBug = keyof typeof LINE_BUGS;

interface Member {
  readonly key: LeaseKey;
  readonly id: string;
  state: "out" | "in" | "told" | "left";
  number: number;
  readonly tell: (event: StoreEvent) => void;
}

/** The data that clients of one subject share. */
export class LinedData extends MemoryStore {
  readonly #bug: LineBug | null;
  readonly #members: Member[] = [];
  #numbers = 0;

  constructor(bug: LineBug | null) {
    super();
    this.#bug = bug;
  }

  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const before = await this.read(writes.map(({ key }) => key));
    const reply = await super.apply(writes);
    for (const [index, { key, next }] of writes.entries()) {
      if (reply.results[index]?.kind !== "applied" || next?.state === "held") continue;
      const now = (await this.read([key])).records[0]!;
      const shown = this.#bug === "shows the record before" ? before.records[index]! : now;
      this.#tellNext(key, { kind: "changed", key, stored: shown });
    }
    return reply;
  }

  joinQueue(key: LeaseKey, listener: (event: StoreEvent) => void): Promise<QueueTicket> {
    const member: Member = { key, id: keyId(key), state: "out", number: 0, tell: listener };
    this.#members.push(member);
    const leave = (why: "served" | "gone"): void => this.#leave(member, why);
    const close = async (): Promise<void> => {
      if (this.#bug === "forgets the turn of one who closed") member.state = "left";
      leave("gone");
    };
    return Promise.resolve({ enter: () => this.#enter(member), leave, close });
  }

  async #enter(member: Member): Promise<void> {
    const isAgain = member.state === "in";
    const goesToTheEnd =
      this.#bug === "sends losers to the end" ||
      (this.#bug === "takes to enter again for a new place" && isAgain);
    if (member.number === 0 || goesToTheEnd) {
      this.#numbers += 1;
      member.number = this.#numbers;
    }
    member.state = "in";
    const stored = (await this.read([member.key])).records[0]!;
    const isFree = stored.kind !== "found" || stored.record.state !== "held";
    if (this.#bug === "leaves who finds it free in the line") return;
    if (!isFree && this.#bug !== "tells at once although the key is held") return;
    this.#tell(member, { kind: "changed", key: member.key, stored: null });
  }

  #leave(member: Member, why: "served" | "gone"): void {
    const { state } = member;
    if (this.#bug === "waits for one who left before its turn" && state === "in") return;
    if (this.#bug === "tells one who has left" && state === "in") return;
    member.state = "left";
    const passes = why === "gone" || this.#bug === "passes the turn on when somebody is served";
    if (state !== "told" || !passes || this.#bug === "forgets the turn of one who left") return;
    if (this.#bug === "deletes a key that was passed on") void this.#delete(member.key);
    this.#tellNext(member.key, { kind: "changed", key: member.key, stored: null });
  }

  async #delete(key: LeaseKey): Promise<void> {
    const stored = (await this.read([key])).records[0]!;
    if (stored.kind === "found") await super.apply([{ key, expected: stored.version, next: null }]);
  }

  #tellNext(key: LeaseKey, event: StoreEvent): void {
    const waiting = this.#waiting(keyId(key));
    if (this.#bug === "tells nobody of a release") return;
    if (this.#bug === "tells all of a release") {
      for (const member of waiting) this.#tell(member, event);
      return;
    }
    if (this.#bug === "tells of every key")
      for (const member of this.#members.filter(({ id }) => id !== keyId(key))) member.tell(event);
    const next = this.#bug === "tells the last instead of the first" ? waiting.at(-1) : waiting[0];
    if (next !== undefined) this.#tell(next, event);
  }

  #tell(member: Member, event: StoreEvent): void {
    member.state = "told";
    queueMicrotask(() => member.tell(event));
  }

  #waiting(id: string): Member[] {
    return this.#members
      .filter((member) => member.id === id && member.state === "in")
      .toSorted((a, b) => a.number - b.number);
  }
}

/** As many clients of one data as are asked for. They need not be told apart: each has places of its own. */
export function linedSubject(bug: LineBug | null): {
  open(): Promise<LeaseStore>;
  openSecond(): Promise<LeaseStore>;
} {
  let data = new LinedData(bug);
  return {
    open: async () => {
      data = new LinedData(bug);
      return data;
    },
    openSecond: async () => data,
  };
}
