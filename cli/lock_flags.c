#include "lock_flags.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/name.h"
#include "base/url.h"
#include "output.h"
#include "open_store.h"

bool snk_lock_flags_parse_busy_code(void *options, const char *value, char *problem, size_t size)
{
    snk_lock_flags *flags = options;
    char *end = NULL;
    errno = 0;
    long code = strtol(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || code < 0 || code > 255) {
        snprintf(problem, size, "must be an exit code from 0 to 255");
        return false;
    }
    flags->busy_code = code;
    flags->keeps_quiet = code == 0;
    return true;
}

bool snk_lock_flags_parse_renew(void *options, const char *value, char *problem, size_t size)
{
    snk_lock_flags *flags = options;
    if (strcmp(value, "never") == 0)
        flags->renew_ms = SNECK_NEVER;
    else if (!snk_duration_parse_ms(value, &flags->renew_ms) || flags->renew_ms == 0) {
        snprintf(problem, size, "must be \"never\" or a duration such as 10s, at most half of the lease");
        return false;
    }
    return true;
}

bool snk_lock_flags_parse_watchdog(void *options, const char *value, char *problem, size_t size)
{
    snk_lock_flags *flags = options;
    if (strcmp(value, "off") == 0)
        flags->watchdog_ms = SNECK_NEVER;
    else if (!snk_duration_parse_ms(value, &flags->watchdog_ms) || flags->watchdog_ms < SNK_WATCHDOG_MS_MIN) {
        snprintf(problem, size, "must be \"off\" or a duration of at least %" PRId64 "ms", SNK_WATCHDOG_MS_MIN);
        return false;
    }
    return true;
}

bool snk_lock_flags_parse_recovery(void *options, const char *value, char *problem, size_t size)
{
    static const char *const names[] = {
        [SNECK_RECOVER_RELEASE] = "release",
        [SNECK_RECOVER_NOTIFY] = "notify",
        [SNECK_RECOVER_REACQUIRE] = "reacquire",
    };
    snk_lock_flags *flags = options;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(value, names[i]) == 0) {
            flags->recovery = (sneck_recovery)i;
            return true;
        }
    }
    snprintf(problem, size, "must be release, notify or reacquire");
    return false;
}

static int refuse(const snk_cli *cli, const sneck_error *error)
{
    snk_report(cli, error);
    return SNK_EXIT_USAGE;
}

int snk_lock_flags_check(const snk_cli *cli, const snk_lock_flags *flags, const char *const names[], size_t count)
{
    sneck_error error;
    if (flags->shared && flags->slots != 0) {
        snk_complain(cli, "-s (a shared lock) and --slots (a semaphore) exclude each other");
        return SNK_EXIT_USAGE;
    }
    for (size_t i = 0; i < count; i++) {
        if (snk_name_check(names[i], &error) != SNECK_OK)
            return refuse(cli, &error);
    }
    if (flags->why != NULL && snk_text_check(flags->why, "--why", 0, SNK_WHY_LENGTH_MAX, &error) != SNECK_OK)
        return refuse(cli, &error);
    int64_t lease_ms = snk_lock_flags_lease_ms(cli, flags);
    if (flags->renew_ms > lease_ms / 2) {
        snk_complain(cli, "--renew must be at most half of the lease, which is %" PRId64 " ms", lease_ms);
        return SNK_EXIT_USAGE;
    }
    return SNK_EXIT_OK;
}

int64_t snk_lock_flags_wait_ms(const snk_lock_flags *flags)
{
    return flags->nonblock ? 0 : flags->wait_ms;
}

static bool lease_of_url(const char *text, int64_t *lease_ms_out)
{
    snk_url url;
    if (snk_url_parse(&url, text, NULL) != SNECK_OK)
        return false; /* sneck_open will say what is wrong with it */
    const char *value = snk_url_value(&url, "lease");
    bool found = value != NULL && snk_duration_parse_ms(value, lease_ms_out);
    snk_url_deinit(&url);
    return found;
}

int64_t snk_lock_flags_lease_ms(const snk_cli *cli, const snk_lock_flags *flags)
{
    int64_t lease_ms = 0;
    const char *given = getenv("SNECK_LEASE");
    if (flags->lease_ms != 0)
        return flags->lease_ms;
    if (lease_of_url(snk_cli_store_url(cli), &lease_ms))
        return lease_ms;
    return given != NULL && snk_duration_parse_ms(given, &lease_ms) ? lease_ms : SNK_LEASE_MS_DEFAULT;
}

int64_t snk_lock_flags_renew_ms(const snk_lock_flags *flags, int64_t lease_ms)
{
    return flags->renew_ms != 0 ? flags->renew_ms : lease_ms / 3;
}

snk_lockset_way snk_lock_flags_way(const snk_lock_flags *flags)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = flags->lease_ms;
    options.renew_ms = flags->renew_ms;
    options.fair = flags->fair;
    options.owner = SNECK_OWNER_HANDLE;
    options.recovery = flags->recovery;
    options.why = flags->why;
    return (snk_lockset_way){ .shared = flags->shared, .slots = flags->slots, .options = options };
}

int snk_lock_flags_open(const snk_cli *cli, const snk_lock_flags *flags, sneck_client **client_out)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.watchdog_ms = flags->watchdog_ms;
    return snk_cli_open_store(cli, &options, client_out);
}
