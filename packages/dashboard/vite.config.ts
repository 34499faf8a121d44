import { resolve } from "node:path";
import { defaultClientConditions, defineConfig } from "vite";

/** Two pages: the live views, and the playground, which also works as plain files from any folder. */
export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  resolve: { conditions: ["solehold-source", ...defaultClientConditions] },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    rolldownOptions: {
      input: {
        index: resolve(import.meta.dirname, "index.html"),
        playground: resolve(import.meta.dirname, "playground.html"),
      },
    },
  },
  worker: { format: "es" },
});
