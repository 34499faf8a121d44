/** A trail that could not be opened leaves nothing behind: no open file, no lock, and nobody who still writes. */
import { expect, test } from "vitest";
import { encodeEvent } from "../../../src/service/audit/chain.ts";
import type { LeftNote, Notebook } from "../../../src/store/index.ts";
import { eventOf, FaultyDisk, gate, openOn, temporaryFolder, traces } from "./support.ts";

/** More than one round of writing takes. */
const NOTES = 600;

function notebookWith(left: readonly LeftNote[]): Notebook {
  return { left, note: () => null, giveBack: () => undefined, save: async () => undefined };
}

/** Made before anything was in the files. */
function leftNotes(): readonly LeftNote[] {
  return Array.from({ length: NOTES }, (_, index) => ({
    place: index + 1,
    text: `0\n${encodeEvent(eventOf({ traceId: `left ${index}` }))}`,
  }));
}

test("when the store's notes cannot be had, or its folder cannot be synced", async () => {
  const folder = await temporaryFolder();
  const disk = new FaultyDisk();
  const notebook = () => Promise.reject(new Error("no notes today"));
  await expect(openOn(disk, { folder, notebook })).rejects.toThrow("no notes today");
  expect(disk.openFiles).toBe(0);
  disk.failing.set("syncFolder", "EIO");
  await expect(openOn(disk, { folder })).rejects.toThrow("EIO");
  expect(disk.openFiles).toBe(0);
  disk.failing.clear();
  const trail = await openOn(disk, { folder });
  await trail.append(eventOf({ traceId: "after" }));
  await trail.close();
  expect(disk.openFiles).toBe(0);
  expect(await traces(folder)).toEqual(["after"]);
});

test("when what was left in the notes cannot be written: the folder is given back after the last attempt", async () => {
  const folder = await temporaryFolder();
  const disk = new FaultyDisk();
  const [second, goOn] = [gate(), gate()];
  disk.failing.set("write", "ENOSPC");
  disk.beforeWrite = async () => {
    if (disk.counts.write === 0) return;
    second.open();
    await goOn.opened;
  };
  const notebook = async () => notebookWith(leftNotes());
  const failed = expect(openOn(disk, { folder, notebook })).rejects.toThrow("ENOSPC");
  await second.opened;
  await expect(openOn(new FaultyDisk(), { folder })).rejects.toMatchObject({ code: "AUDIT_LOCKED" });
  goOn.open();
  await failed;
  expect(disk.openFiles).toBe(0);
  const trail = await openOn(new FaultyDisk(), { folder, notebook });
  expect(trail.takenOver).toBe(NOTES);
  await trail.close();
  expect(await traces(folder)).toHaveLength(NOTES);
});
