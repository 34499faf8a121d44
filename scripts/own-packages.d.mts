// The types of own-packages.mjs, for tests.

export declare const BENCH: string;
export declare const EMULATORS: string;
export declare const ADAPTED: string;
export declare function ensurePackages(folder: string, say?: (message: string) => void): Promise<void>;
export declare function areInstalled(folder: string): boolean;
