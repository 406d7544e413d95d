/** Prints `passed failed skipped` from the JSON report of a test run, given the report and the runner's exit code. */

import { readFileSync } from 'node:fs';

interface Report {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: { status: string; assertionResults: { status: string }[] }[];
}

const [reportPath = '', exitCode] = process.argv.slice(2);
const report: Report = JSON.parse(readFileSync(reportPath, 'utf8'));

// A file that cannot be loaded has no failed test in it, and a leaked error belongs to none: both count as one.
const brokenFiles = report.testResults.filter(
  (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
).length;
const failed = report.numFailedTests + brokenFiles;
const unexplained = exitCode !== '0' && failed === 0 ? 1 : 0;

console.log(report.numPassedTests, failed + unexplained, report.numPendingTests + report.numTodoTests);
