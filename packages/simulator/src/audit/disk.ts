/**
 * The disk of one machine, for the files of an audit trail. It outlives the processes that write to it. What it was
 * given is in the system's memory first, and on the device only once it was synced: a process that is killed leaves
 * the one, a machine that loses its power the other, and a write that was under way is there in part. A file whose
 * name was not synced may be gone.
 *
 * A sync may fail. The system then takes what it was given since the last one for written, as systems do: a second sync
 * succeeds without writing it, and a loss of power shows that it never reached the device.
 */
import { basename, dirname } from "node:path";
import type { AuditDisk, AuditFile, AuditReader } from "solehold/internal";
import type { SimulatedEnv } from "../world/env.ts";
import type { RandomStream } from "../world/random.ts";
import type { World } from "../world/world.ts";

const LINE_FEED = 0x0a;
const FIRST_BYTES = 4_096;

export interface DiskOptions {
  readonly world: World;
  /** What an access takes on average, at present. */
  readonly accessMs: () => number;
  readonly random: RandomStream;
}

/** A write on its way to the disk. */
interface UnderWay {
  /** This much of it was done when its process died. */
  readonly cutShort: (part: number) => void;
}

export class SimulatedDisk {
  readonly #options: DiskOptions;
  readonly #files = new Map<string, Content>();

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  /**
   * As a process sees it, until it dies; `losesPower` says whether the machine dies with it, `failsToSync` whether the next
   * sync fails.
   */
  mountedBy(
    env: SimulatedEnv,
    losesPower: () => boolean,
    failsToSync: () => boolean = () => false,
  ): AuditDisk & AuditReader {
    const underWay = new Set<UnderWay>();
    const { random } = this.#options;
    env.onKill(() => {
      for (const { cutShort } of underWay) cutShort(random.fraction());
      if (!losesPower()) return;
      for (const [path, content] of this.#files) {
        if (!content.isNamed && random.chance(0.5)) this.#files.delete(path);
        else content.losePower(random.fraction());
      }
    });
    const access: Access = (work, cutShort = () => undefined) =>
      new Promise((resolve, reject) => {
        const { world, accessMs } = this.#options;
        const each: UnderWay = { cutShort };
        underWay.add(each);
        world.schedule(world.nowMs + random.exponential(accessMs()), env.machine, "audit disk", () => {
          underWay.delete(each);
          if (env.dead) return;
          try {
            resolve(work());
          } catch (error) {
            reject(error as Error);
          }
        });
      });
    return {
      open: async (path) => new SimulatedFile(this.#opened(path), access, failsToSync),
      syncFolder: async (folder) => {
        for (const [path, content] of this.#files) if (dirname(path) === folder) content.isNamed = true;
      },
      ...this.reader,
    };
  }

  /** What is there at the moment. */
  get reader(): AuditReader {
    const contentOf = (path: string): Buffer => {
      const content = this.#files.get(path);
      if (content !== undefined) return content.bytes;
      throw Object.assign(new Error(`there is no ${path}`), { code: "ENOENT" });
    };
    return {
      names: async (folder) => [...this.#files.keys()].filter((path) => dirname(path) === folder).map(nameOf),
      lines: async function* (path, throughByte) {
        const bytes = contentOf(path).subarray(0, throughByte);
        const tornAt = bytes.lastIndexOf(LINE_FEED) + 1;
        yield { lines: linesOf(bytes.subarray(0, tornAt)), tornBytes: bytes.length - tornAt };
      },
      lastBytes: async (path, mostBytes) => {
        const bytes = contentOf(path);
        return bytes.subarray(Math.max(0, bytes.length - mostBytes));
      },
    };
  }

  #opened(path: string): Content {
    const content = this.#files.get(path) ?? new Content();
    this.#files.set(path, content);
    return content;
  }
}

type Access = (work: () => void, cutShort?: (part: number) => void) => Promise<void>;

class SimulatedFile implements AuditFile {
  readonly #content: Content;
  readonly #access: Access;
  readonly #failsToSync: () => boolean;

  constructor(content: Content, access: Access, failsToSync: () => boolean) {
    this.#content = content;
    this.#access = access;
    this.#failsToSync = failsToSync;
  }

  async size(): Promise<number> {
    return this.#content.bytes.length;
  }

  write(data: Buffer, position: number): Promise<void> {
    return this.#access(
      () => this.#content.write(data, position),
      (part) => this.#content.write(data.subarray(0, Math.floor(data.length * part)), position),
    );
  }

  sync(): Promise<void> {
    return this.#access(() => {
      if (!this.#failsToSync()) return this.#content.sync();
      this.#content.dropUnsynced();
      throw Object.assign(new Error("EIO: i/o error, fsync"), { code: "EIO" });
    });
  }

  truncate(length: number): Promise<void> {
    return this.#access(() => this.#content.truncate(length));
  }

  async close(): Promise<void> {}
}

/** A file's bytes, as the system has them and as the device has them. */
class Content {
  isNamed = false;
  #page = Buffer.alloc(FIRST_BYTES);
  #length = 0;
  /** On the device are so many bytes of the same, unless there is `#before`. */
  #synced = 0;
  /** What is on the device, where it was written over since. */
  #before: Buffer | null = null;
  /** Taken for written by the system, and not on the device: from here to there. */
  #dropped: { readonly from: number; readonly to: number } | null = null;

  get bytes(): Buffer {
    return this.#page.subarray(0, this.#length);
  }

  write(data: Buffer, position: number): void {
    this.#keepBefore(position);
    const end = position + data.length;
    if (end > this.#page.length)
      this.#page = Buffer.concat([this.bytes, Buffer.alloc(Math.max(end, this.#page.length) * 2)]);
    data.copy(this.#page, position);
    this.#length = Math.max(this.#length, end);
    if (this.#dropped !== null && position <= this.#dropped.from) this.#drop(end, this.#dropped.to);
  }

  truncate(length: number): void {
    this.#keepBefore(length);
    this.#length = Math.min(this.#length, length);
    if (this.#dropped !== null) this.#drop(this.#dropped.from, Math.min(this.#dropped.to, length));
  }

  sync(): void {
    this.#synced = this.#length;
    this.#before = null;
    if (this.#dropped === null) return;
    this.#before = Buffer.from(this.bytes).fill(0, this.#dropped.from, this.#dropped.to);
  }

  /** A sync that failed. */
  dropUnsynced(): void {
    const { from = this.#synced } = this.#dropped ?? {};
    this.#drop(from, this.#length);
  }

  #drop(from: number, to: number): void {
    this.#dropped = from < to ? { from, to } : null;
  }

  /** Of what was not synced this part may be on the device all the same. */
  losePower(part: number): void {
    if (this.#before === null) {
      this.#length = this.#synced + Math.floor((this.#length - this.#synced) * part);
    } else {
      this.#page = Buffer.concat([this.#before, Buffer.alloc(FIRST_BYTES)]);
      this.#length = this.#before.length;
    }
    this.isNamed = true;
    this.#dropped = null;
    this.sync();
  }

  #keepBefore(from: number): void {
    if (from < this.#synced) this.#before ??= Buffer.from(this.#page.subarray(0, this.#synced));
  }
}

function nameOf(path: string): string {
  return basename(path);
}

function linesOf(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(LINE_FEED, start);
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return lines;
}
