/** A run that was recorded, as a trace. */
import { RESOURCE, type SimulatedCluster } from "../full/simulated-cluster.ts";
import { faultsOf } from "./faults.ts";
import { TRACE_FORMAT, TRACE_VERSION, type Trace, type TraceLane } from "./trace.ts";
import { laneOf } from "./tracer.ts";

/** `untilMs`: what came later is left out. */
export function traceOf(cluster: SimulatedCluster, title: string, untilMs: number): Trace {
  const { world, config, tracer, engine, machines, servers, violation, keys } = cluster;
  if (tracer === null) throw new Error("only a recorded run has a trace");
  const before = ({ atMs }: { readonly atMs: number }): boolean => atMs <= untilMs;
  const timeline = (world.timeline ?? []).filter(before);
  const lane =
    (kind: TraceLane["kind"]) =>
    (machine: { readonly name: string; readonly clock: { readonly rate: number } }) => ({
      name: machine.name,
      kind,
      rate: machine.clock.rate,
    });
  return {
    format: TRACE_FORMAT,
    version: TRACE_VERSION,
    title,
    ttlMs: config.ttlMs,
    endMs: untilMs,
    originMs: null,
    keys: keys.map(({ name }) => name),
    lanes: [
      ...machines.map(lane("node")),
      ...(servers?.machines ?? []).map(lane("server")),
      lane("store")(engine.machine),
      { name: RESOURCE, kind: "resource", rate: 1 },
    ],
    beliefs: tracer.beliefs
      .filter(({ fromMs }) => fromMs <= untilMs)
      .map((each) => (each.toMs !== null && each.toMs > untilMs ? { ...each, toMs: null, end: null } : each))
      .map((each) =>
        each.abortedMs !== null && each.abortedMs > untilMs ? { ...each, abortedMs: null } : each,
      ),
    records: tracer.records.filter(before),
    writes: tracer.writes.filter(before),
    messages: (world.messages ?? [])
      .filter(({ sentMs }) => sentMs <= untilMs)
      .map(({ from, to, label, sentMs, arrivedMs }) => ({
        from,
        to: label.startsWith("guarded write") ? RESOURCE : to,
        label,
        sentMs,
        arrivedMs,
      })),
    faults: faultsOf(timeline, untilMs),
    events: timeline.map(({ atMs, who, label, text }) => ({ atMs, who: laneOf(who), label, text })),
    violation,
    expectations: cluster.expectations,
  };
}
