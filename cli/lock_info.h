/* How `test`, `ls` and `show` tell about a lock. */
#ifndef SNK_CLI_LOCK_INFO_H
#define SNK_CLI_LOCK_INFO_H

#include <stddef.h>

#include "json.h"
#include "options.h"
#include "sneck.h"

#define SNK_PARTY_TEXT_SIZE 96

/* SNK_EXIT_OK, or the exit code after a complaint about a wrong name: found before the store is opened. */
int snk_lock_name_check(const snk_cli *cli, const char *name);

/* "host:pid". Not escaped. Returns `buffer`. */
const char *snk_party_text(char buffer[SNK_PARTY_TEXT_SIZE], const sneck_party *party);

/* The lock as an object; `detailed`: with its queue and its incidents. */
void snk_lock_info_json(snk_json *json, const sneck_info *info, bool detailed);

#endif
