#include "client/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/name.h"
#include "store/store.h"

#define KEYS_MAX 32

const char *snk_settings_url(const char *url)
{
    if (url == NULL)
        url = secure_getenv("SNECK_STORE");
    return url == NULL ? "sqlite:" : url;
}

/* ---- Option structs ---- */

sneck_status snk_options_copy(void *to, const void *from, size_t size, const char *what, sneck_error *error)
{
    size_t given = 0;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given > 4096)
        return snk_fail(error, SNECK_INVALID, 0, "%s.size is %zu: start from %s_INIT", what, given, what);
    const unsigned char *bytes = from;
    for (size_t i = size; i < given; i++)
        if (bytes[i] != 0)
            return snk_fail(error, SNECK_UNSUPPORTED, 0, "%s has fields that sneck %s does not know; use a newer one",
                            what, sneck_version_string());
    memcpy(to, from, given < size ? given : size);
    return SNECK_OK;
}

/* ---- Times ---- */

typedef struct time_setting {
    const char *key; /* in the URL, and in messages */
    const char *variable;
    int64_t min_ms;
    int64_t max_ms;
    int64_t default_ms;
    bool may_be_off;
} time_setting;

static const time_setting lease_setting = {
    .key = "lease",
    .variable = "SNECK_LEASE",
    .min_ms = SNK_LEASE_MS_MIN,
    .max_ms = SNK_LEASE_MS_MAX,
    .default_ms = SNK_LEASE_MS_DEFAULT,
};

static const time_setting watchdog_setting = {
    .key = "watchdog",
    .variable = "SNECK_WATCHDOG",
    .min_ms = SNK_WATCHDOG_MS_MIN,
    .max_ms = SNK_LEASE_MS_MAX,
    .default_ms = SNK_WATCHDOG_MS_DEFAULT,
    .may_be_off = true,
};

static const time_setting retry_setting = {
    .key = "retry",
    .variable = "SNECK_RETRY",
    .min_ms = SNK_RETRY_MS_MIN,
    .max_ms = SNK_LEASE_MS_MAX,
    .default_ms = SNK_RETRY_MS_DEFAULT,
};

static sneck_status check_time(const time_setting *setting, int64_t ms, const char *where, sneck_error *error)
{
    if ((ms >= setting->min_ms && ms <= setting->max_ms) || (setting->may_be_off && ms == SNECK_NEVER))
        return SNECK_OK;
    return snk_fail(error, SNECK_INVALID, 0, "%s is %lld ms: it must be from %lld ms to %lld ms%s", where,
                    (long long)ms, (long long)setting->min_ms, (long long)setting->max_ms,
                    setting->may_be_off ? ", or off" : "");
}

static sneck_status parse_time(const time_setting *setting, const char *text, const char *where, int64_t *ms_out,
                               sneck_error *error)
{
    bool is_off = strcmp(text, "off") == 0 || strcmp(text, "never") == 0;
    *ms_out = SNECK_NEVER;
    if (!(setting->may_be_off && is_off) && !snk_duration_parse_ms(text, ms_out))
        return snk_fail(error, SNECK_INVALID, 0, "%s is not a duration: write it as 250ms, 1.5, 30s, 5m or 1h%s", where,
                        setting->may_be_off ? ", or off" : "");
    return check_time(setting, *ms_out, where, error);
}

/* The URL is checked even where the struct beats it; the environment only where it counts. */
static sneck_status load_time(const time_setting *setting, int64_t option_ms, const snk_url *url, int64_t *ms_out,
                              sneck_error *error)
{
    char where[64];
    sneck_status status = SNECK_OK;
    const char *in_url = snk_url_value(url, setting->key);
    const char *in_environment = secure_getenv(setting->variable);
    *ms_out = setting->default_ms;
    if (in_url != NULL) {
        (void)snprintf(where, sizeof where, "%s= in the store's URL", setting->key);
        status = parse_time(setting, in_url, where, ms_out, error);
    } else if (option_ms == 0 && in_environment != NULL && *in_environment != '\0') {
        status = parse_time(setting, in_environment, setting->variable, ms_out, error);
    }
    if (status == SNECK_OK && option_ms != 0) {
        (void)snprintf(where, sizeof where, "%s_ms", setting->key);
        status = check_time(setting, option_ms, where, error);
        *ms_out = option_ms;
    }
    return status;
}

/* ---- Clients ---- */

static sneck_status check_keys(const snk_url *url, sneck_error *error)
{
    const char *known[KEYS_MAX + 1] = { "prefix", "lease", "watchdog", "retry" };
    size_t count = 4;
    const char *const *of_store = snk_store_keys(url->scheme);
    if (of_store == NULL)
        return SNECK_OK; /* there is no such store, and opening it says so */
    for (; *of_store != NULL && count < KEYS_MAX; of_store++)
        known[count++] = *of_store;
    known[count] = NULL;
    return snk_url_check_keys(url, known, error);
}

static sneck_status load_prefix(snk_settings *settings, const snk_url *url, const char *option, sneck_error *error)
{
    const char *in_url = snk_url_value(url, "prefix");
    if (in_url != NULL) {
        sneck_status status = snk_text_check(in_url, "prefix= in the store's URL", 0, SNK_PREFIX_LENGTH_MAX, error);
        if (status != SNECK_OK)
            return status;
    }
    const char *prefix = option != NULL ? option : in_url != NULL ? in_url : SNK_PREFIX_DEFAULT;
    sneck_status status = snk_text_check(prefix, "the prefix", 0, SNK_PREFIX_LENGTH_MAX, error);
    if (status == SNECK_OK)
        (void)snk_copy_text(settings->prefix, sizeof settings->prefix, prefix);
    return status;
}

sneck_status snk_settings_load(snk_settings *settings, const snk_url *url, const sneck_client_options *options,
                               sneck_error *error)
{
    sneck_client_options chosen = SNECK_CLIENT_OPTIONS_INIT;
    sneck_status status = SNECK_OK;
    if (options != NULL)
        status = snk_options_copy(&chosen, options, sizeof chosen, "SNECK_CLIENT_OPTIONS", error);
    if (status == SNECK_OK)
        status = check_keys(url, error);
    if (status == SNECK_OK)
        status = load_time(&lease_setting, chosen.lease_ms, url, &settings->lease_ms, error);
    if (status == SNECK_OK)
        status = load_time(&watchdog_setting, chosen.watchdog_ms, url, &settings->watchdog_ms, error);
    if (status == SNECK_OK)
        status = load_time(&retry_setting, chosen.retry_ms, url, &settings->retry_ms, error);
    if (status == SNECK_OK)
        status = load_prefix(settings, url, chosen.prefix, error);
    settings->max_locks = chosen.max_locks == 0 ? SNK_LOCKS_MAX_DEFAULT : chosen.max_locks;
    settings->log = chosen.log;
    settings->log_context = chosen.log_context;
    settings->log_format = chosen.log_format;
    settings->on_event = chosen.on_event;
    settings->event_context = chosen.event_context;
    return status;
}

/* ---- Locks ---- */

sneck_status snk_lease_check(int64_t lease_ms, sneck_error *error)
{
    return check_time(&lease_setting, lease_ms, "lease_ms", error);
}

sneck_status snk_wait_check(int64_t wait_ms, sneck_error *error)
{
    if (wait_ms >= 0 || wait_ms == SNECK_FOREVER)
        return SNECK_OK;
    return snk_fail(error, SNECK_INVALID, 0, "wait_ms is %lld: give 0, a number of milliseconds, or SNECK_FOREVER",
                    (long long)wait_ms);
}

static sneck_status check_renewal(const sneck_lock_options *options, sneck_error *error)
{
    if (options->renew_ms == SNECK_NEVER || (options->renew_ms >= 1 && options->renew_ms <= options->lease_ms / 2))
        return SNECK_OK;
    return snk_fail(error, SNECK_INVALID, 0,
                    "renew_ms is %lld: it must be at least 1 and at most half of the lease (%lld ms), or SNECK_NEVER",
                    (long long)options->renew_ms, (long long)options->lease_ms);
}

static sneck_status check_choices(const sneck_lock_options *options, sneck_error *error)
{
    if (options->owner != SNECK_OWNER_THREAD && options->owner != SNECK_OWNER_HANDLE)
        return snk_fail(error, SNECK_INVALID, 0, "owner is %d: give SNECK_OWNER_THREAD or SNECK_OWNER_HANDLE",
                        (int)options->owner);
    if (options->recovery != SNECK_RECOVER_RELEASE && options->recovery != SNECK_RECOVER_NOTIFY &&
        options->recovery != SNECK_RECOVER_REACQUIRE)
        return snk_fail(error, SNECK_INVALID, 0,
                        "recovery is %d: give SNECK_RECOVER_RELEASE, SNECK_RECOVER_NOTIFY or SNECK_RECOVER_REACQUIRE",
                        (int)options->recovery);
    return SNECK_OK;
}

/* A time that is off with 0 and needs the watchdog otherwise. */
static sneck_status check_limit(const char *name, int64_t ms, const sneck_lock_options *options, sneck_error *error)
{
    if (ms < 0 || ms > SNK_LEASE_MS_MAX)
        return snk_fail(error, SNECK_INVALID, 0, "%s is %lld: it must be from 0 (off) to %lld ms", name, (long long)ms,
                        (long long)SNK_LEASE_MS_MAX);
    if (ms > 0 && options->watchdog_ms == SNECK_NEVER)
        return snk_fail(error, SNECK_INVALID, 0, "%s needs the watchdog, and watchdog_ms is SNECK_NEVER", name);
    return SNECK_OK;
}

static sneck_status check_care(const sneck_lock_options *options, sneck_error *error)
{
    sneck_status status = check_time(&watchdog_setting, options->watchdog_ms, "watchdog_ms", error);
    if (status == SNECK_OK)
        status = check_limit("stuck_ms", options->stuck_ms, options, error);
    if (status == SNECK_OK)
        status = check_limit("max_hold_ms", options->max_hold_ms, options, error);
    if (status != SNECK_OK)
        return status;
    if (options->stuck_ms > 0 && options->owner == SNECK_OWNER_HANDLE)
        return snk_fail(error, SNECK_INVALID, 0, "stuck_ms looks at threads: it needs .owner = SNECK_OWNER_THREAD");
    if (options->recovery == SNECK_RECOVER_REACQUIRE && options->watchdog_ms == SNECK_NEVER)
        return snk_fail(error, SNECK_INVALID, 0,
                        "SNECK_RECOVER_REACQUIRE needs the watchdog, and watchdog_ms is SNECK_NEVER");
    if (options->alert_threshold > SNK_ALERT_THRESHOLD_MAX)
        return snk_fail(error, SNECK_INVALID, 0, "alert_threshold is %u: it must be from 1 to %d, or 0 for 3",
                        options->alert_threshold, SNK_ALERT_THRESHOLD_MAX);
    return SNECK_OK;
}

sneck_status snk_lock_options_load(sneck_lock_options *out, const sneck_lock_options *options,
                                   const snk_settings *settings, sneck_error *error)
{
    *out = (sneck_lock_options)SNECK_LOCK_OPTIONS_INIT;
    sneck_status status = SNECK_OK;
    if (options != NULL)
        status = snk_options_copy(out, options, sizeof *out, "SNECK_LOCK_OPTIONS", error);
    if (out->lease_ms == 0)
        out->lease_ms = settings->lease_ms;
    if (out->renew_ms == 0)
        out->renew_ms = out->lease_ms / 3;
    if (out->watchdog_ms == 0)
        out->watchdog_ms = settings->watchdog_ms;
    if (out->alert_threshold == 0)
        out->alert_threshold = SNK_ALERT_THRESHOLD;
    if (status == SNECK_OK)
        status = snk_lease_check(out->lease_ms, error);
    if (status == SNECK_OK)
        status = check_renewal(out, error);
    if (status == SNECK_OK)
        status = check_choices(out, error);
    if (status == SNECK_OK)
        status = check_care(out, error);
    if (status == SNECK_OK && out->why != NULL)
        status = snk_text_check(out->why, "why", 0, SNK_WHY_LENGTH_MAX, error);
    return status;
}

snk_terms snk_lock_terms(const sneck_lock_options *options)
{
    return (snk_terms){
        .lease_ns = options->lease_ms * SNK_NS_PER_MS,
        .renew_ns = options->renew_ms == SNECK_NEVER ? SNK_NEVER_NS : options->renew_ms * SNK_NS_PER_MS,
        .fair = options->fair,
        .forget_on_loss = options->recovery != SNECK_RECOVER_NOTIFY,
        .care = {
            .watchdog_ms = options->watchdog_ms == SNECK_NEVER ? 0 : (uint32_t)options->watchdog_ms,
            .stuck_ms = (uint32_t)options->stuck_ms,
            .max_hold_ms = (uint32_t)options->max_hold_ms,
            .threshold = (uint8_t)options->alert_threshold,
            .recovery = (uint8_t)options->recovery,
        },
    };
}
