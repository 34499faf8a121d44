/** In the place of the library's table of real stores: the playground has the simulated one only. */
export async function openByScheme(url: string): Promise<never> {
  throw new RangeError(`the playground opens no store, got ${JSON.stringify(url)}`);
}
