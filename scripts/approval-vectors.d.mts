/** The vectors by file name, built with the functions of the coordinator layer. */
export function buildVectors(api: object): { readonly [name: string]: string };
