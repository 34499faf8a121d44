// What a crash leaves on the simulated disk: the real journal is only tested by it if that is what disks do.
import { describe, expect, it } from "vitest";
import { SimulatedDisk } from "../../src/audit/disk.ts";
import { SimulatedEnv } from "../../src/world/env.ts";
import { Machine } from "../../src/world/machine.ts";
import { Choices } from "../../src/world/random.ts";
import { World } from "../../src/world/world.ts";

const PATH = "/audit/n1/file";
const TEXT = Buffer.from("one\ntwo\n");

function machine(seed: number, crash: "process" | "power") {
  const world = new World(new Choices(seed), { record: "no" });
  const random = world.choices.stream("disk");
  const disk = new SimulatedDisk({ world, accessMs: () => 5, random });
  const own = new Machine(world, "n1", { monotonicMs: 0, wallMs: 0, rate: 1 });
  const env = new SimulatedEnv({ world, machine: own, random, timerLatenessMs: 0 });
  const mounted = disk.mountedBy(env, () => crash === "power");
  const after = (work: Promise<unknown>): Promise<void> => {
    let isDone = false;
    void work.then(() => {
      isDone = true;
    });
    return world.run(world.nowMs + 1_000, () => (isDone ? "stop" : "go on"));
  };
  const left = async (): Promise<string | null> => {
    const names = await disk.reader.names("/audit/n1");
    return names.length === 0 ? null : (await disk.reader.lastBytes(PATH, 1_000)).toString();
  };
  return { env, mounted, after, left };
}

/** What is left after `work`, over many seeds. */
async function leftBy(
  crash: "process" | "power",
  work: (given: ReturnType<typeof machine>) => Promise<void>,
): Promise<ReadonlySet<string | null>> {
  const all = new Set<string | null>();
  for (let seed = 1; seed <= 40; seed += 1) {
    const given = machine(seed, crash);
    await work(given);
    given.env.kill();
    all.add(await given.left());
  }
  return all;
}

const beginnings = Array.from({ length: TEXT.length + 1 }, (_, length) => TEXT.toString("utf8", 0, length));

describe("the simulated disk", () => {
  it("has all that was written when a process is killed, and what was synced when the power goes", async () => {
    const write = async ({ mounted, after }: ReturnType<typeof machine>): Promise<void> => {
      const file = await mounted.open(PATH);
      await mounted.syncFolder("/audit/n1");
      await after(file.write(TEXT, 0));
    };
    expect([...(await leftBy("process", write))]).toEqual([TEXT.toString()]);
    const left = await leftBy("power", write);
    expect(left.size).toBeGreaterThan(2);
    expect(beginnings).toEqual(expect.arrayContaining([...left]));
    const sync = async (given: ReturnType<typeof machine>): Promise<void> => {
      await write(given);
      await given.after((await given.mounted.open(PATH)).sync());
    };
    expect([...(await leftBy("power", sync))]).toEqual([TEXT.toString()]);
  });

  it("has a part of what was being written, and nothing of it later", async () => {
    const left = await leftBy("process", async ({ mounted }) => {
      const file = await mounted.open(PATH);
      await mounted.syncFolder("/audit/n1");
      void file.write(TEXT, 0);
    });
    expect(left.size).toBeGreaterThan(2);
    expect(beginnings).toEqual(expect.arrayContaining([...left]));
  });

  it("may lose a file whose name was not synced, and brings back what was cut off but not synced", async () => {
    const unnamed = await leftBy("power", async ({ mounted, after }) => {
      const file = await mounted.open(PATH);
      await after(file.write(TEXT, 0));
      await after(file.sync());
    });
    expect([...unnamed].sort()).toEqual([TEXT.toString(), null].sort());
    const cut = await leftBy("power", async ({ mounted, after }) => {
      const file = await mounted.open(PATH);
      await mounted.syncFolder("/audit/n1");
      await after(file.write(TEXT, 0));
      await after(file.sync());
      await after(file.truncate(4));
    });
    expect([...cut]).toEqual([TEXT.toString()]);
  });
});
