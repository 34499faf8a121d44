/** A trail that could not be opened leaves nothing behind: no open file and no lock. */
import { expect, test } from "vitest";
import { eventOf, FaultyDisk, openOn, temporaryFolder, traces } from "./support.ts";

test("when its folder cannot be synced", async () => {
  const folder = await temporaryFolder();
  const disk = new FaultyDisk();
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
