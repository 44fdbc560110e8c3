#include "client/setup.h"

#include <unistd.h>

#include "base/error.h"
#include "client/options.h"
#include "store/store.h"

/* Parses and checks a URL; deinitialise it if that is SNECK_OK. */
static sneck_status read_url(snk_url *url, const char *text, snk_settings *settings, sneck_error *error)
{
    sneck_status status = snk_url_parse(url, snk_settings_url(text), error);
    if (status != SNECK_OK)
        return status;
    status = snk_settings_load(settings, url, NULL, error);
    if (status != SNECK_OK)
        snk_url_deinit(url);
    return status;
}

sneck_status snk_setup(const char *text, bool *needed_out, sneck_error *error)
{
    snk_url url;
    snk_settings settings = { .lease_ms = 0 };
    *needed_out = false;
    sneck_status status = read_url(&url, text, &settings, error);
    if (status != SNECK_OK)
        return status;
    snk_store_config config = { .url = &url, .prefix = settings.prefix, .identity = { .pid = getpid() } };
    if (snk_id_random(&config.identity.client)) {
        snk_id_to_uuid(&config.identity.client, config.identity.uuid);
        status = snk_store_setup(&config, needed_out, error);
    } else {
        status = snk_fail(error, SNECK_UNAVAILABLE, 0, "the kernel gives no random bytes for the client's id");
    }
    snk_url_deinit(&url);
    return status;
}

const char *snk_setup_text(const char *text, sneck_error *error)
{
    snk_url url;
    snk_settings settings = { .lease_ms = 0 };
    if (read_url(&url, text, &settings, error) != SNECK_OK)
        return NULL;
    const char *statements = snk_store_setup_text(url.scheme);
    snk_url_deinit(&url);
    (void)snk_ok(error);
    return statements;
}
