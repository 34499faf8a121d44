/** Uploads with a fence, on a real S3 server and on the Azure Blob service. */
import { describe, expect, it } from "vitest";
import { FencedObjectWriter } from "../../src/guards/index.ts";
import { type ConditionalObjects, openObjects } from "../../src/stores/object/index.ts";
import { azuritePlace, cephPlace, freshPrefix } from "../stores/object/places.ts";
import { ATTEMPTS, newTerm, successor, zombie } from "./zombie.ts";

const SERVERS: readonly (readonly [string, () => Promise<ConditionalObjects>])[] = [
  ["S3 (Ceph)", async () => await openObjects(cephPlace(), { timeoutMs: 20_000 })],
  ["Azure Blob (azurite)", async () => await openObjects(await azuritePlace(), { timeoutMs: 20_000 })],
];

const bytes = (text: string) => Buffer.from(text);

describe.each(SERVERS)("uploads with a fence to %s", (_name, open) => {
  it("are refused every time once a newer fence was seen", async () => {
    const writer = new FencedObjectWriter({ objects: await open() });
    const name = `${freshPrefix()}report`;
    expect(await writer.get(name)).toBeNull();
    await writer.put(name, bytes("first"), zombie);
    await writer.put(name, bytes("second"), successor);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      await expect(writer.put(name, bytes("zombie"), zombie)).rejects.toMatchObject({
        code: "STALE_FENCE",
        newestFence: successor.fence,
      });
    }
    await writer.put(name, bytes("third"), newTerm);
    await expect(writer.put(name, bytes("zombie"), successor)).rejects.toMatchObject({ code: "STALE_FENCE" });
    expect(await writer.get(name)).toEqual({ bytes: bytes("third"), fence: newTerm.fence });
  });

  it("are refused when the newer one came between the zombie's look and its write, with the same content", async () => {
    const objects = await open();
    const writer = new FencedObjectWriter({ objects });
    const name = `${freshPrefix()}report`;
    await writer.put(name, bytes("same"), zombie);
    const paused: ConditionalObjects = Object.assign(Object.create(objects), {
      // The zombie has looked; now it stands still while its successor writes the same content.
      putIfAbsent: async (...put: Parameters<ConditionalObjects["putIfAbsent"]>) => {
        await writer.put(name, bytes("same"), successor);
        return await objects.putIfAbsent(...put);
      },
      putIfMatch: objects.putIfMatch.bind(objects),
      get: objects.get.bind(objects),
      remove: objects.remove.bind(objects),
    });
    const late = new FencedObjectWriter({ objects: paused });
    await expect(late.put(name, bytes("zombie"), zombie)).rejects.toMatchObject({ code: "STALE_FENCE" });
    expect(await writer.get(name)).toEqual({ bytes: bytes("same"), fence: successor.fence });
  });

  it("of a zombie are refused after its successor's raise, before the successor's first put", async () => {
    const writer = new FencedObjectWriter({ objects: await open() });
    const name = `${freshPrefix()}report`;
    await writer.raise(name, { key: zombie.key, fence: 1n });
    expect(await writer.get(name)).toBeNull();
    await writer.put(name, bytes("first"), zombie);
    await writer.raise(name, successor);
    await expect(writer.put(name, bytes("zombie"), zombie)).rejects.toMatchObject({
      newestFence: successor.fence,
    });
    await expect(writer.raise(name, zombie)).rejects.toMatchObject({ newestFence: successor.fence });
    expect(await writer.get(name)).toEqual({ bytes: bytes("first"), fence: successor.fence });
  });

  it("that come between a raise's look and its write keep their content", async () => {
    const objects = await open();
    const writer = new FencedObjectWriter({ objects });
    const name = `${freshPrefix()}report`;
    await writer.put(name, bytes("first"), zombie);
    let isFirst = true;
    const paused: ConditionalObjects = Object.assign(Object.create(objects), {
      putIfMatch: async (...put: Parameters<ConditionalObjects["putIfMatch"]>) => {
        if (isFirst) await writer.put(name, bytes("second"), zombie);
        isFirst = false;
        return await objects.putIfMatch(...put);
      },
      get: objects.get.bind(objects),
    });
    await new FencedObjectWriter({ objects: paused }).raise(name, successor);
    expect(await writer.get(name)).toEqual({ bytes: bytes("second"), fence: successor.fence });
  });

  it("race, and the newest fence is what stays", async () => {
    const writer = new FencedObjectWriter({ objects: await open() });
    const name = `${freshPrefix()}report`;
    const fences = Array.from({ length: 8 }, (_, index) => BigInt(index + 1));
    const puts = fences.map((fence) => writer.put(name, bytes(`by ${fence}`), { key: zombie.key, fence }));
    const ended = await Promise.allSettled(puts);
    expect(ended.at(-1)?.status).toBe("fulfilled");
    expect(await writer.get(name)).toEqual({ bytes: bytes("by 8"), fence: 8n });
  });
});
