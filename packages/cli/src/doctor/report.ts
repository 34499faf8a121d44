/** What the doctor found: one entry per question, in the order they were asked. */
export type CheckStatus = "ok" | "warn" | "fail" | "skip";

export interface Check {
  readonly id: string;
  readonly status: CheckStatus;
  readonly detail: string;
}

export interface DoctorReport {
  readonly ok: boolean;
  readonly checks: readonly Check[];
}

export class Findings {
  readonly #checks: Check[] = [];

  add(id: string, status: CheckStatus, detail: string): void {
    this.#checks.push({ id, status, detail });
  }

  /** A question whose answer may be an exception, which is a failed check. */
  async ask(id: string, question: () => Promise<Omit<Check, "id">>): Promise<CheckStatus> {
    let found: Omit<Check, "id">;
    try {
      found = await question();
    } catch (error) {
      found = { status: "fail", detail: error instanceof Error ? error.message : String(error) };
    }
    this.add(id, found.status, found.detail);
    return found.status;
  }

  report(): DoctorReport {
    return { ok: this.#checks.every(({ status }) => status !== "fail"), checks: [...this.#checks] };
  }
}
