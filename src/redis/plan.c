#include "redis/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static sneck_status copy_texts(snk_plan *plan, const snk_topology_config *config, sneck_error *error)
{
    const snk_redis_config *from = &config->server;
    const struct {
        const char *text;
        const char **to[2];
    } texts[SNK_PLAN_TEXTS] = {
        { from->user, { &plan->server.user } },
        { from->password, { &plan->server.password } },
        { from->unix_path, { &plan->server.unix_path } },
        { from->client_name, { &plan->server.client_name, &plan->sentinel.client_name } },
        { from->tls.ca, { &plan->server.tls.ca, &plan->sentinel.tls.ca } },
        { from->tls.cert, { &plan->server.tls.cert, &plan->sentinel.tls.cert } },
        { from->tls.key, { &plan->server.tls.key, &plan->sentinel.tls.key } },
        { config->sentinel_user, { &plan->sentinel.user } },
        { config->sentinel_password, { &plan->sentinel.password } },
        { config->service, { &plan->service } },
    };
    for (size_t i = 0; i < SNK_PLAN_TEXTS; i++) {
        plan->texts[i] = strdup(texts[i].text == NULL ? "" : texts[i].text);
        if (plan->texts[i] == NULL)
            return snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory for a client");
        for (size_t j = 0; j < 2 && texts[i].to[j] != NULL; j++)
            *texts[i].to[j] = plan->texts[i];
    }
    return SNECK_OK;
}

static sneck_status copy_hosts(snk_plan *plan, const snk_topology_config *config, sneck_error *error)
{
    if (config->host_count == 0)
        return snk_fail(error, SNECK_INVALID, 0, "redis: no server is given");
    plan->hosts = calloc(config->host_count, sizeof *plan->hosts);
    if (plan->hosts == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory for a client");
    memcpy(plan->hosts, config->hosts, config->host_count * sizeof *plan->hosts);
    plan->host_count = config->host_count;
    return SNECK_OK;
}

sneck_status snk_plan_init(snk_plan *plan, const snk_topology_config *config, sneck_error *error)
{
    *plan = (snk_plan){ .kind = config->kind, .server = config->server, .displaced = config->displaced };
    plan->server.host = NULL;
    plan->sentinel = (snk_redis_config){
        .tls = config->server.tls,
        .connect_timeout_ns = config->server.connect_timeout_ns,
        .command_timeout_ns = config->server.command_timeout_ns,
    };
    sneck_status status = copy_texts(plan, config, error);
    if (status == SNECK_OK && config->kind != SNK_TOPOLOGY_SINGLE)
        status = copy_hosts(plan, config, error);
    if (status != SNECK_OK)
        snk_plan_deinit(plan);
    return status;
}

void snk_plan_deinit(snk_plan *plan)
{
    for (size_t i = 0; i < SNK_PLAN_TEXTS; i++) {
        if (plan->texts[i] != NULL)
            explicit_bzero(plan->texts[i], strlen(plan->texts[i]));
        free(plan->texts[i]);
    }
    free(plan->hosts);
    *plan = (snk_plan){ .kind = plan->kind };
}
