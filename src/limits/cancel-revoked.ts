import type { KeyStore } from '../store/key-store.ts';
import type { KeyWork } from './key-work.ts';

/**
 * Cancels the work of keys that another process has revoked, as `codecell keys revoke` does. Requests need no watch:
 * each looks its key up. This is for what was let in before.
 */
export async function cancelRevoked(keys: Pick<KeyStore, 'revokedAmong'>, work: KeyWork): Promise<void> {
  const ids = work.keyIds();
  if (ids.length === 0) return;
  for (const id of await keys.revokedAmong(ids)) work.cancel(id);
}
