/** File systems that several machines share: their renames, locks and clocks are not those of one machine. */
import { configError } from "./options.ts";

/** By the number that statfs gives, as in Linux's magic.h and the file systems' own sources. */
const NAMES: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x01021997, "9p"],
  [0x65735546, "FUSE"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x73757245, "Coda"],
  [0x7461636f, "OCFS2"],
  [0x01161970, "GFS2"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x786f4256, "a VirtualBox share"],
]);

/** Throws for one of these; others are local, or not known. Some systems give the number signed. */
export function assertLocal(folder: string, statfsType: number): void {
  const name = NAMES.get(statfsType >>> 0);
  if (name === undefined) return;
  throw configError(`'${folder}' is on ${name}, which several machines can share: use a local disk`);
}
