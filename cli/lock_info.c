#include "lock_info.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/name.h"
#include "exit.h"
#include "output.h"

int snk_lock_name_check(const snk_cli *cli, const char *name)
{
    sneck_error error;
    sneck_status status = snk_name_check(name, &error);
    if (status != SNECK_OK)
        snk_report(cli, &error);
    return snk_exit_of(status);
}

const char *snk_party_text(char buffer[SNK_PARTY_TEXT_SIZE], const sneck_party *party)
{
    snprintf(buffer, SNK_PARTY_TEXT_SIZE, "%s:%" PRId64, party->host, party->pid);
    return buffer;
}

static void put_party(snk_json *json, const char *key, const sneck_party *party)
{
    snk_json_open(json, key, '{');
    snk_json_text(json, "owner", party->owner);
    snk_json_text(json, "host", party->host);
    snk_json_int(json, "pid", party->pid);
    snk_json_text(json, "why", party->why);
    snk_json_int(json, "age_ms", party->age_ms);
    snk_json_int(json, "remaining_ms", party->remaining_ms);
    snk_json_text(json, "mode", party->mode);
    snk_json_uint(json, "units", party->units);
    snk_json_close(json, '}');
}

static void put_incident(snk_json *json, const sneck_incident *incident)
{
    char time[SNK_TIME_TEXT_SIZE];
    snk_json_open(json, NULL, '{');
    snk_json_text(json, "time", snk_format_time(time, incident->time_ms));
    snk_json_int(json, "time_ms", incident->time_ms);
    snk_json_text(json, "kind", incident->kind);
    snk_json_uint(json, "token", incident->token);
    snk_json_text(json, "owner", incident->owner);
    snk_json_text(json, "text", incident->text);
    snk_json_close(json, '}');
}

static void put_node(snk_json *json, const sneck_node *node)
{
    snk_json_open(json, NULL, '{');
    snk_json_text(json, "name", node->name);
    snk_json_text(json, "state", node->state);
    snk_json_text(json, "trouble", node->trouble);
    snk_json_bool(json, "holds", node->holds);
    snk_json_int(json, "latency_us", node->latency_us);
    snk_json_int(json, "clock_offset_us", node->clock_offset_us);
    snk_json_int(json, "counts_in_ms", node->counts_in_ms);
    snk_json_close(json, '}');
}

static void put_nodes(snk_json *json, const sneck_info *info)
{
    snk_json_open(json, "nodes", '[');
    for (size_t i = 0; i < info->node_count; i++)
        put_node(json, &info->nodes[i]);
    snk_json_close(json, ']');
}

static void put_details(snk_json *json, const sneck_info *info)
{
    if (info->permits >= 0)
        snk_json_int(json, "permits", info->permits);
    snk_json_open(json, "holders", '[');
    for (size_t i = 0; i < info->holder_count; i++)
        put_party(json, NULL, &info->holders[i]);
    snk_json_close(json, ']');
    snk_json_open(json, "waiters", '[');
    for (size_t i = 0; i < info->waiter_count; i++)
        put_party(json, NULL, &info->waiters[i]);
    snk_json_close(json, ']');
    snk_json_open(json, "incidents", '[');
    for (size_t i = 0; i < info->incident_count; i++)
        put_incident(json, &info->incidents[i]);
    snk_json_close(json, ']');
    if (info->node_count > 0)
        put_nodes(json, info);
}

void snk_lock_info_json(snk_json *json, const sneck_info *info, bool detailed)
{
    snk_json_open(json, NULL, '{');
    snk_json_text(json, "name", info->name);
    snk_json_bool(json, "held", info->held);
    snk_json_bool(json, "fair", info->held && info->fair);
    snk_json_uint(json, "token", info->token);
    if (info->held)
        put_party(json, "holder", &info->holder);
    else
        snk_json_text(json, "holder", NULL);
    snk_json_uint(json, "waiter_count", info->waiter_count);
    if (detailed)
        put_details(json, info);
    snk_json_close(json, '}');
}
