/** The doctor of the command line: can it be reached, may it be trusted (solehold/doctor), and is its folder safe? */
import { stat } from "node:fs/promises";
import type { LeaseExecutor } from "solehold";
import {
  type DoctorReport,
  type Env,
  examineLeases,
  newDoctorKey,
  ok,
  ReportBuilder,
  warn,
} from "solehold/internal";
import { withoutSecrets } from "../../format/url.ts";
import { versions } from "../about.ts";

const GROUP_OR_OTHERS_MAY_WRITE = 0o022;

export async function examine(options: {
  readonly url: string;
  readonly tenant: string;
  readonly env: Env;
  readonly open: () => Promise<LeaseExecutor>;
}): Promise<DoctorReport> {
  const { url, tenant, env } = options;
  const builder = new ReportBuilder();
  const { solehold, node, platform } = versions();
  builder.add("version", ok(`solehold ${solehold}, node ${node}, ${platform}`));
  let executor: LeaseExecutor | undefined;
  const isReachable = await builder.run("reachable", async () => {
    const startedMs = env.monotonicMs();
    executor = await options.open();
    await executor.read(newDoctorKey(tenant, env));
    return ok(`${withoutSecrets(url)} answered in ${Math.round(env.monotonicMs() - startedMs)} ms`);
  });
  try {
    if (isReachable !== "fail" && executor !== undefined) {
      await examineLeases(builder, executor, tenant, env);
      await examineFolder(builder, url);
    }
  } finally {
    await executor?.close();
  }
  return builder.report();
}

/** A folder that others may write to is a store that others may forge leases in. */
async function examineFolder(builder: ReportBuilder, url: string): Promise<void> {
  const folder = /^(?:embedded|file):(?:\/\/(?=\/))?(.+)$/i.exec(url)?.[1];
  if (folder === undefined) return;
  await builder.run("permissions", async () => {
    const { mode } = await stat(folder);
    const found = `${folder} has mode ${(mode & 0o777).toString(8).padStart(3, "0")}`;
    const isSafe = (mode & GROUP_OR_OTHERS_MAY_WRITE) === 0;
    return isSafe ? ok(found) : warn(`${found}: others may write to it; chmod 700 it`);
  });
}
