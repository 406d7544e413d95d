import { startService } from '../compose.ts';
import { loadConfig } from '../config.ts';
import { shellQuote } from './shell-quote.ts';

/** Exit codes of a process that a second signal ends: 128 and the signal's number. */
const SIGNAL_EXIT_CODES = { SIGINT: 130, SIGTERM: 143 };

/**
 * Runs the service until SIGTERM or SIGINT, then lets running programs finish; a second signal ends it at once.
 * @throws OperatorError when it cannot start.
 */
export async function serve(environment: NodeJS.ProcessEnv): Promise<void> {
  const { config } = loadConfig(environment);
  const service = await startService(config);
  const stopped = Promise.withResolvers<void>();
  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(SIGNAL_EXIT_CODES[signal]);
      stopping = true;
      service.stop().then(stopped.resolve, stopped.reject);
    });
  }
  // Nobody may be reading what is only said; the service goes on.
  process.stdout.on('error', () => undefined);
  process.stdout.write(greeting(service.url, service.firstAdminKey, config.adminKey !== undefined));
  await stopped.promise;
}

function greeting(url: string, firstAdminKey: string | null, keyIsSet: boolean): string {
  if (firstAdminKey === null) {
    const where = keyIsSet
      ? 'The admin key is that of CODECELL_ADMIN_KEY.'
      : 'There is an admin key already; "codecell keys create --admin" makes another.';
    return `Codecell listens on ${url}\n${where}\n`;
  }
  const command = [
    `curl ${url}/v1/execute`,
    `-H ${shellQuote(`Authorization: Bearer ${firstAdminKey}`)}`,
    `-H ${shellQuote('Content-Type: application/json')}`,
    `-d ${shellQuote('{"code": "print(6 * 7)"}')}`,
  ].join(' ');
  return `Codecell listens on ${url}

The admin key, shown this once (only its hash is stored; "codecell keys create --admin" makes another):

    ${firstAdminKey}

Try it:

    ${command}

`;
}
