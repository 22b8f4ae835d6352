// Prints what the AsyncAPI parser says of the document named as the argument, as JSON: [{severity, code, message, path}].
// Run by tools/contract with NODE_PATH set to the pinned packages; the parser is a library without a command of its own.
const { Parser, fromFile } = require('@asyncapi/parser');

fromFile(new Parser(), process.argv[2]).parse().then(({ diagnostics }) => {
  console.log(JSON.stringify(diagnostics.map(({ severity, code, message, path }) => ({ severity, code, message, path: path.join('/') }))));
});
