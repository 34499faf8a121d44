/**
 * The few file operations a writer needs, behind an interface so that a full or broken disk can be played
 * in a test. `write` is all or an error: what a failed one left behind is unknown until truncated.
 */
import { fstatSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { constants, open } from "node:fs/promises";
import { syncFolder } from "../support/files.ts";

export interface AuditFile {
  size(): Promise<number>;
  write(data: Buffer, position: number): Promise<void>;
  /** Resolves once the content is on the device. After a failure nothing since the last success is sure. */
  sync(): Promise<void>;
  truncate(length: number): Promise<void>;
  close(): Promise<void>;
}

export interface AuditDisk {
  /** For writing anywhere in the file; created if it is absent. */
  open(path: string): Promise<AuditFile>;
  /** Makes the names in a folder durable: without it a new file may vanish with the power. */
  syncFolder(path: string): Promise<void>;
}

class RealFile implements AuditFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Of an open file the system knows it without asking the disk: a thread would only add its own delay. */
  async size(): Promise<number> {
    return fstatSync(this.#handle.fd).size;
  }

  /** A disk that fills up takes part of a write and says so in the count; the next try gives the error. */
  async write(data: Buffer, position: number): Promise<void> {
    for (let done = 0; done < data.length; ) {
      const { bytesWritten } = await this.#handle.write(data, done, data.length - done, position + done);
      done += bytesWritten;
    }
  }

  sync(): Promise<void> {
    return this.#handle.datasync();
  }

  truncate(length: number): Promise<void> {
    return this.#handle.truncate(length);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

export const realDisk: AuditDisk = {
  async open(path) {
    return new RealFile(await open(path, constants.O_RDWR | constants.O_CREAT, 0o600));
  },
  syncFolder,
};
