/*
 * Keeps fork() out of SQLite.
 *
 * SQLite remembers per process which locks it has on a file, and guards that by mutexes. A child that is forked while
 * some thread of ours is in a transaction would inherit both in the middle: a connection of its own to the same file
 * would then be refused for ever, believe in locks that it does not have, or hang. So everything that SQLite does for us
 * happens inside this gate, and fork() waits (bounded) until nobody is inside. It is one for the process, because fork()
 * is.
 */
#ifndef SNK_STORE_SQLITE_FORKGATE_H
#define SNK_STORE_SQLITE_FORKGATE_H

/* Any number of threads may be inside. Taken after snk_sqlite.mutex, before the writer mutex. */
void snk_forkgate_enter(void);
void snk_forkgate_leave(void);

#endif
