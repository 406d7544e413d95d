/** The `codecell` command: parses arguments, nothing else. Each command is loaded when it is called. */

import { existsSync } from 'node:fs';
import { Command, Option } from 'commander';
import type { JobListOptions } from './cli/jobs.ts';
import { addKeysCommand } from './cli/keys-command.ts';
import type { RunOptions } from './cli/run.ts';
import type { UsageOptions } from './cli/usage.ts';
import { RUN_STATUSES } from './runs/run.ts';
import { ArgumentError, OperatorError } from './shared/errors.ts';
import { readVersion } from './version.ts';

/** Exit codes: wrong arguments, and what a shell shows for SIGPIPE. */
const BAD_USAGE = 2;
const READER_GONE = 141;

const program = new Command('codecell')
  .description('Self-hosted code interpreter: runs untrusted Python in a kernel-enforced jail.')
  .version(readVersion())
  .showHelpAfterError('"--help" lists what there is.')
  .showSuggestionAfterError()
  .addHelpText(
    'after',
    '\nSettings are CODECELL_ variables, which "codecell config" lists. keys, usage, jobs and backup need the\nCODECELL_DATA_DIR of the service.',
  )
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : BAD_USAGE))
  .hook('preAction', (_program, command) => {
    // A reader that has gone, as `head` does, is no error. `run` has more to end, and the service goes on without one.
    if (['run', 'serve'].includes(command.name())) return;
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit(READER_GONE);
    });
  });

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
  .option('--json', 'as JSON')
  .action(async (options: { json: boolean }) => {
    const { printConfig } = await import('./cli/config.ts');
    printConfig(process.env, options);
  });

addKeysCommand(program);

program
  .command('run')
  .description('run one program in the sandbox, without a server')
  .argument('<file>', 'the Python program; - reads it from standard input')
  .option(
    '--stdin <file>',
    "text for the program's stdin; - is our own, also the default where that is no terminal",
  )
  .option('--inputs <json>', 'the dict `inputs`: a JSON object, or @FILE that holds one')
  .addOption(
    new Option('--timeout-ms <number>', 'stop it after this running time: 1 to 30000').default(
      '30000',
      '30000',
    ),
  )
  .addOption(new Option('--memory-mb <number>', 'memory it may use, in MB: 32 to 2048').default('512', '512'))
  .option('--images <folder>', 'where to write images (default: the current folder)')
  .option('--json', 'print the whole run as a JSON object and nothing else')
  .action(async (file: string, options: Omit<RunOptions, 'file'>) => {
    const { run } = await import('./cli/run.ts');
    process.exitCode = await run({ file, ...options });
  });

program
  .command('usage')
  .description('who has used what: a table with bars, JSON or CSV')
  .option(
    '--from <time>',
    'first moment: a date or an RFC 3339 time, floored to the hour (default: 30 days before --to)',
  )
  .option('--to <time>', 'first moment that is left out (default: the end of this hour)')
  .addOption(
    new Option('--group-by <period>', 'what to add up').choices(['hour', 'day', 'month']).default('day'),
  )
  .option('--key <id>', 'only of this key')
  .option('--team <name>', 'only of keys that belong to this team today')
  .addOption(new Option('--json', 'as GET /v1/usage answers it').conflicts('csv'))
  .option('--csv', 'as CSV')
  .action(async (options: UsageOptions) => {
    const { usage } = await import('./cli/usage.ts');
    await usage(process.env, options);
  });

const jobs = program.command('jobs').description("look at every key's jobs, wait for them, cancel them");

jobs
  .command('list')
  .description('jobs, newest first')
  .addOption(new Option('--status <status>', 'only of this status').choices(RUN_STATUSES))
  .option('--key <id>', 'only of this key')
  .addOption(new Option('--limit <number>', 'how many').default('20', '20'))
  .option('--json', 'as JSON')
  .action(async (options: JobListOptions) => {
    const { listJobs } = await import('./cli/jobs.ts');
    await listJobs(process.env, options);
  });

jobs
  .command('show')
  .description('a job as it is now')
  .argument('<id>')
  .option('--json', 'as GET /v1/jobs/{id} answers it')
  .action(async (id: string, options: { json: boolean }) => {
    const { showJob } = await import('./cli/jobs.ts');
    await showJob(process.env, id, options);
  });

jobs
  .command('wait')
  .description('wait until a job has ended; the exit code is 0 if it succeeded, else 1')
  .argument('<id>')
  .option('--json', 'as GET /v1/jobs/{id} answers it')
  .action(async (id: string, options: { json: boolean }) => {
    const { waitForJob } = await import('./cli/jobs.ts');
    process.exitCode = await waitForJob(process.env, id, options);
  });

jobs
  .command('cancel')
  .description('cancel a job and wait until its process is gone')
  .argument('<id>')
  .option('--json', 'as DELETE /v1/jobs/{id} answers it')
  .action(async (id: string, options: { json: boolean }) => {
    const { cancelJob } = await import('./cli/jobs.ts');
    await cancelJob(process.env, id, options);
  });

program
  .command('backup')
  .description('copy the database to a file, also while the service runs')
  .argument('<file>', 'a file that does not exist yet')
  .action(async (file: string) => {
    const { backup } = await import('./cli/backup.ts');
    await backup(process.env, file);
  });

program
  .command('doctor')
  .description('check what the sandbox needs on this machine, and try to get out of it')
  .option('--json', 'as JSON')
  .action(async (options: { json: boolean }) => {
    const { doctor } = await import('./cli/doctor.ts');
    process.exitCode = await doctor(process.env, options);
  });

program
  .command('bench')
  .description('measure the service against a bare fork')
  .argument('[benchmarks...]', 'print, plot, groupby (these three by default), usage, jobs')
  .action(async (names: string[]) => {
    if (!existsSync(new URL('../bench/main.ts', import.meta.url))) {
      throw new OperatorError('The benchmarks are not part of this installation: run them in a checkout.');
    }
    const { bench } = await import('../bench/main.ts');
    process.exitCode = await bench(names);
  });

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof OperatorError)) throw error;
  process.stderr.write(`codecell: ${error.message}\n`);
  process.exitCode = error instanceof ArgumentError ? BAD_USAGE : 1;
}
