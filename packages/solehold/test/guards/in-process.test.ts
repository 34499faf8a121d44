/** The guards of what is in this process. */
import { expect, it } from "vitest";
import { FencedResource, FenceGate } from "../../src/guards/index.ts";
import { successor, zombie } from "./zombie.ts";

const STALE = expect.objectContaining({ code: "STALE_FENCE", newestFence: successor.fence });

it("a resource refuses a zombie after its successor's raise, before the successor's first write", () => {
  const resource = new FencedResource("nothing");
  resource.write(zombie, () => "first");
  resource.raise(successor);
  expect(() => resource.write(zombie, () => "zombie")).toThrow(STALE);
  expect(() => resource.raise(zombie)).toThrow(STALE);
  expect(resource.state).toBe("first");
});

it("a gate refuses a zombie after its successor's raise, which waits for the zombie inside", async () => {
  const gate = new FenceGate();
  const leave = await gate.enter(zombie);
  const steps: string[] = [];
  const raised = gate.raise(successor).then(() => steps.push("raised"));
  await new Promise((resolve) => setImmediate(resolve));
  steps.push("left");
  leave();
  await raised;
  expect(steps).toEqual(["left", "raised"]);
  await expect(gate.enter(zombie)).rejects.toThrow(STALE);
});
