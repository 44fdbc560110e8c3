#include "open_store.h"

#include <stdlib.h>

#include "exit.h"
#include "output.h"

const char *snk_cli_store_url(const snk_cli *cli)
{
    const char *url = cli->store[0] != '\0' ? cli->store : getenv("SNECK_STORE");
    return url != NULL && url[0] != '\0' ? url : "sqlite:";
}

int snk_cli_open_store(const snk_cli *cli, const sneck_client_options *options, sneck_client **client_out)
{
    sneck_error error;
    sneck_status status = sneck_open(snk_cli_store_url(cli), options, client_out, &error);
    if (status == SNECK_OK)
        return SNK_EXIT_OK;
    snk_report(cli, &error);
    return snk_exit_of_open(status);
}
