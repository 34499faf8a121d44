/** What statfs says on file systems that several machines share. */
export const networkNames: readonly (readonly [string, number])[] = [
  ["NFS", 0x6969],
  ["CIFS", 0xff534d42],
  // As statfs gives it where the number is signed.
  ["SMB2", 0xfe534d42 | 0],
  ["9p", 0x01021997],
  ["FUSE", 0x65735546],
];
