/** The `codecell` command: parses arguments, nothing else. Each command is loaded when it is called. */

import { Command } from 'commander';
import { OperatorError } from './shared/errors.ts';
import { readVersion } from './version.ts';

const program = new Command('codecell')
  .description('Self-hosted code interpreter: runs untrusted Python in a kernel-enforced jail.')
  .version(readVersion())
  .showHelpAfterError()
  .showSuggestionAfterError();

program
  .command('serve')
  .description('run the service until SIGTERM or SIGINT')
  .action(async () => {
    const { serve } = await import('./cli/serve.ts');
    await serve(process.env);
  });

program
  .command('config')
  .description('print every setting with its value, source, bounds and meaning')
  .option('--json', 'as JSON', false)
  .action(async (options: { json: boolean }) => {
    const { printConfig } = await import('./cli/config.ts');
    printConfig(process.env, options);
  });

program
  .command('keys')
  .description('manage keys')
  .command('create')
  .description('make a key and print its secret, once')
  .requiredOption('--admin', 'an admin key: it may call everything')
  .option('--name <name>', 'what to call it', 'admin')
  .action(async (options: { name: string }) => {
    const { createAdminKeyCommand } = await import('./cli/keys.ts');
    await createAdminKeyCommand(process.env, options);
  });

program
  .command('doctor')
  .description('check what the sandbox needs on this machine, and try to get out of it')
  .option('--json', 'as JSON', false)
  .action(async (options: { json: boolean }) => {
    const { doctor } = await import('./cli/doctor.ts');
    process.exitCode = await doctor(process.env, options);
  });

program
  .command('bench')
  .description('measure the service against a bare fork')
  .argument('[arguments...]')
  .allowUnknownOption()
  .action(async (benchArguments: string[]) => {
    const { bench } = await import('../bench/main.ts');
    process.exitCode = await bench(benchArguments);
  });

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof OperatorError)) throw error;
  process.stderr.write(`codecell: ${error.message}\n`);
  process.exitCode = 1;
}
