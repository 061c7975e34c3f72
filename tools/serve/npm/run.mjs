// The checks of one client against a server: `node run.mjs CLIENT URL`. A line of JSON for each check; clients.py reads them.

const [client, url] = process.argv.slice(2);
const { CHECKS } = await import(`./${client}.mjs`);

let failed = 0;
for (const check of CHECKS) {
  const began = performance.now();
  let good = true;
  let said;
  try {
    said = await check(url);
  } catch (error) {
    console.error(error);
    failed += 1;
    [good, said] = [false, `${error.name}: ${error.message}`.split("\n")[0]];
  }
  const seconds = (performance.now() - began) / 1000;
  console.log(JSON.stringify({ name: check.name, good, said: String(said ?? ""), seconds }));
}
process.exitCode = failed === 0 ? 0 : 1;
