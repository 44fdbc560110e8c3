#include "documented.h"

#include <stdio.h>
#include <string.h>

#include "claims.h"
#include "test.h"

/* What `sneck setup` does, as the role that owns the tables. */
static void run_setup(int port, const char *url_text)
{
    char direct[256];
    sneck_error error;
    snk_url url;
    snk_id client = test_id();
    bool needed = false;
    const char *rest = strstr(url_text, "localhost");
    assert_non_null(rest);
    (void)snprintf(direct, sizeof direct, "%.*s127.0.0.1:%d%s", (int)(rest - url_text), url_text, port,
                   rest + strlen("localhost"));
    assert_int_equal(snk_url_parse(&url, direct, &error), SNECK_OK);
    snk_store_config config = { .url = &url, .prefix = "lock:", .identity = test_identity(&client) };
    if (snk_store_setup(&config, &needed, &error) != SNECK_OK)
        fail_msg("setup: %s", error.message);
    assert_true(needed);
    snk_url_deinit(&url);
}

void documented_roles(const char *page, int port, void (*run)(void *context, const char *sql), void *context)
{
    static const char command[] = "sneck setup --store ";
    char path[512];
    char line[2048];
    const char *source = getenv("SNECK_SOURCE");
    (void)snprintf(path, sizeof path, "%s/%s", source == NULL ? "." : source, page);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail_msg("%s is not there; SNECK_SOURCE names the project's folder", path);
    bool inside = false;
    unsigned steps = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "## ", 3) == 0)
            inside = strcmp(line, "## A role of its own") == 0;
        if (!inside || strncmp(line, "    ", 4) != 0)
            continue;
        steps++;
        if (strncmp(line + 4, command, sizeof command - 1) == 0)
            run_setup(port, line + 4 + sizeof command - 1);
        else
            run(context, line + 4);
    }
    (void)fclose(file);
    assert_true(steps > 5);
}
