/** What a soak runs on, by name. */
export declare const ENGINES: Readonly<Record<string, () => Promise<unknown>>>;
