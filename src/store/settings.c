#include "store/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/error.h"

sneck_status snk_setting_choose(const snk_url *url, const char *key, const char *const words[], int *choice_out,
                                sneck_error *error)
{
    const char *value = snk_url_value(url, key);
    *choice_out = 0;
    if (value == NULL)
        return SNECK_OK;
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], value) == 0) {
            *choice_out = i;
            return SNECK_OK;
        }
    }
    return snk_fail(error, SNECK_INVALID, 0, "%s=%.40s in the store's URL: it is one of %s %s %s", key, value, words[0],
                    words[1], words[2] == NULL ? "" : words[2]);
}

sneck_status snk_setting_number(const char *text, const char *what, long least, long most, long *number_out,
                                sneck_error *error)
{
    char *end = NULL;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || errno != 0 || number < least || number > most)
        return snk_fail(error, SNECK_INVALID, 0, "%s in the store's URL is a number from %ld to %ld", what, least,
                        most);
    *number_out = number;
    return SNECK_OK;
}

sneck_status snk_setting_time(const snk_url *url, const char *key, int64_t most_ms, int64_t *ms_out, sneck_error *error)
{
    const char *value = snk_url_value(url, key);
    if (value == NULL)
        return SNECK_OK;
    size_t digits = strspn(value, "0123456789");
    bool is_bare = value[digits] == '\0';
    bool has_unit = !is_bare && strpbrk(value, "smh") != NULL;
    int64_t ms = 0;
    /* A bare number of seconds is a thousand times one of milliseconds. */
    bool is_time = (is_bare || has_unit) && snk_duration_parse_ms(value, &ms);
    if (is_bare)
        ms /= 1000;
    if (!is_time || ms < 1 || ms > most_ms)
        return snk_fail(
            error, SNECK_INVALID, 0,
            "%s=%.40s in the store's URL: it is a time from 1ms to %lldms, such as 500ms or 2s; a bare number "
            "is milliseconds",
            key, value, (long long)most_ms);
    *ms_out = ms;
    return SNECK_OK;
}

sneck_status snk_setting_secret(const char *path, const char *what, char secret[SNK_PASSWORD_SIZE], sneck_error *error)
{
    secret[0] = '\0';
    if (path == NULL || *path == '\0')
        return SNECK_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, secret, SNK_PASSWORD_SIZE - 1);
    int cause = errno;
    if (fd >= 0)
        (void)close(fd);
    if (length < 0)
        return snk_fail(error, SNECK_DENIED, cause, "the file that %s names cannot be read", what);
    secret[length] = '\0';
    secret[strcspn(secret, "\r\n")] = '\0';
    return SNECK_OK;
}

sneck_status snk_setting_password(const snk_url *url, char password[SNK_PASSWORD_SIZE], sneck_error *error)
{
    if (*url->password == '\0')
        return snk_setting_secret(secure_getenv("SNECK_PASSWORD_FILE"), "SNECK_PASSWORD_FILE", password, error);
    if (strlen(url->password) >= SNK_PASSWORD_SIZE)
        return snk_fail(error, SNECK_INVALID, 0, "the password in the store's URL is too long");
    (void)snk_copy_text(password, SNK_PASSWORD_SIZE, url->password);
    return SNECK_OK;
}
