/* Opening the store that the command line names. */
#ifndef SNK_CLI_OPEN_STORE_H
#define SNK_CLI_OPEN_STORE_H

#include "options.h"
#include "sneck.h"

/* The store's URL as given by --store or $SNECK_STORE, with its password; "sqlite:" when neither is given. */
const char *snk_cli_store_url(const snk_cli *cli);

/* SNK_EXIT_OK, or the exit code after a complaint. `options` may be NULL. */
int snk_cli_open_store(const snk_cli *cli, const sneck_client_options *options, sneck_client **client_out);

#endif
