// Bundles the report's script and style into the Python package and notes what they were made from.
// `node build.mjs --check` builds in memory and exits 1 if the committed files differ.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const assets = join(here, "../plugins/rpl_report/src/rpl_report/html/assets");

async function bundle(entry, extra) {
  const result = await build({
    entryPoints: [join(here, entry)],
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    legalComments: "none",
    target: ["chrome109", "firefox115", "safari16.4"],
    ...extra,
  });
  return result.outputFiles[0].text;
}

async function sources(folder) {
  const entries = await readdir(join(here, folder), { withFileTypes: true });
  const names = [];
  for (const entry of entries) {
    const name = `${folder}/${entry.name}`;
    names.push(...(entry.isDirectory() ? await sources(name) : [name]));
  }
  return names.sort();
}

async function digests() {
  const names = [...(await sources("src")), "build.mjs", "package-lock.json", "package.json", "tsconfig.json"];
  const found = {};
  for (const name of names) {
    found[name] = createHash("sha256").update(await readFile(join(here, name))).digest("hex");
  }
  return found;
}

const script = await bundle("src/main.ts", { format: "iife" });
if (script.includes("</script")) throw new Error("the script would end its own element");
const built = {
  "report.js": script,
  "report.css": await bundle("src/report.css", { loader: { ".css": "css" } }),
  "LICENSE.uPlot.txt": await readFile(join(here, "node_modules/uplot/LICENSE"), "utf8"),
};
built["built-from.json"] = `${JSON.stringify(
  {
    sources: await digests(),
    outputs: Object.fromEntries(
      Object.entries(built).map(([name, text]) => [name, createHash("sha256").update(text).digest("hex")]),
    ),
  },
  null,
  2,
)}\n`;

if (process.argv.includes("--check")) {
  for (const [name, text] of Object.entries(built)) {
    if ((await readFile(join(assets, name), "utf8")) !== text) {
      console.error(`${name} is not what web/ builds: run \`npm run build\` in web/`);
      process.exitCode = 1;
    }
  }
} else {
  await mkdir(assets, { recursive: true });
  for (const [name, text] of Object.entries(built)) await writeFile(join(assets, name), text);
}
