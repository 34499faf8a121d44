/** Of the kit on engines where a write takes milliseconds; SOLEHOLD_EFFORT=full for all of it. */
export const EFFORT = process.env.SOLEHOLD_EFFORT === "full" ? "full" : "reduced";
