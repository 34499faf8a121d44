export interface TestPlan {
  readonly runsChecks: boolean;
  readonly preparesAll: boolean;
  readonly installsAdapted: boolean;
}

export function planOf(args: readonly string[]): TestPlan;
export function startedFor<Name extends string>(names: readonly Name[], wasUp: readonly string[]): Name[];
