import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores are the smallest machine this runs on, and every file starts a sandbox of its own.
    maxWorkers: 2,
    // Real processes and deadlines on a machine that is never quiet: what fails three times is broken.
    retry: 2,
  },
});
