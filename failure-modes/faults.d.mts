export declare const FAULTS: Readonly<Record<string, { readonly what: string; readonly good: string }>>;
