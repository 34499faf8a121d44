/** What the doctor found: one entry per check, in the order in which they ran. */
export type CheckStatus = "ok" | "warn" | "fail" | "skip";

export interface Finding {
  readonly status: CheckStatus;
  readonly detail: string;
}

export interface Check extends Finding {
  readonly id: string;
}

export interface DoctorReport {
  readonly ok: boolean;
  readonly checks: readonly Check[];
}

export function ok(detail: string): Finding {
  return { status: "ok", detail };
}

export function warn(detail: string): Finding {
  return { status: "warn", detail };
}

export function fail(detail: string): Finding {
  return { status: "fail", detail };
}

export class ReportBuilder {
  readonly #checks: Check[] = [];

  add(id: string, finding: Finding): void {
    this.#checks.push({ id, ...finding });
  }

  /** A check that throws has failed. */
  async run(id: string, check: () => Promise<Finding>): Promise<CheckStatus> {
    const finding = await check().catch((error: unknown) =>
      fail(error instanceof Error ? error.message : String(error)),
    );
    this.add(id, finding);
    return finding.status;
  }

  report(): DoctorReport {
    return { ok: this.#checks.every(({ status }) => status !== "fail"), checks: [...this.#checks] };
  }
}
