/*
 * Deliberate bugs, one per build (meson -Dbug=N), which the simulator must catch: a check that nothing can fail is
 * worth nothing. In an ordinary build every SNK_BUGGY is the constant false.
 */
#ifndef SNK_BASE_BUG_H
#define SNK_BASE_BUG_H

#ifndef SNK_BUG
#define SNK_BUG 0
#endif

#define SNK_BUGGY(number) (SNK_BUG == (number))

#endif
