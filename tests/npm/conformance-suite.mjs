// How Node.js runs the protocol's conformance suite.
import { fileURLToPath } from "node:url";

// The suite imports `globSync`, which Node.js has from 22 on, for a command that is not used here.
const fs = `export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => [];`;
const hooks = `export const resolve = (name, context, next) => name === "fs" && context.parentURL?.includes("/conformance/dist/")
  ? { url: ${JSON.stringify("data:text/javascript," + encodeURIComponent(fs))}, shortCircuit: true } : next(name, context);`;
const register = `import { register } from "node:module"; register(${JSON.stringify("data:text/javascript," + encodeURIComponent(hooks))});`;

export const here = (path) => fileURLToPath(new URL(path, import.meta.url));

// The arguments of Node.js for a command of the suite.
export const suite = (...command) => {
  const program = here("node_modules/@modelcontextprotocol/conformance/dist/index.js");
  return ["--import", "data:text/javascript," + encodeURIComponent(register), program, ...command];
};
