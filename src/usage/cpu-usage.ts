/** What a quota of processor time is checked against. */
export interface CpuUsage {
  /** Processor milliseconds of the key's runs that have ended since midnight UTC. Reads memory alone. */
  usedTodayMs(keyId: string): number;
}
