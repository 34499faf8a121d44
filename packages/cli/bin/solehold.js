#!/usr/bin/env node
import { main } from "../dist/main.js";

// Output is written synchronously, so nothing is lost; a store that hangs must not keep the process.
process.exit(await main(process.argv.slice(2)));
