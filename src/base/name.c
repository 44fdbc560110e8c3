#include "base/name.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"

static bool is_control(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character <= 0x9F);
}

sneck_status snk_text_check(const char *text, const char *what, size_t length_min, size_t length_max,
                            sneck_error *error)
{
    if (text == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "%s is NULL: give a text of %zu to %zu bytes", what, length_min,
                        length_max);
    size_t length = strnlen(text, length_max + 1);
    if (length < length_min)
        return snk_fail(error, SNECK_INVALID, 0, "%s is empty: give 1 to %zu bytes", what, length_max);
    if (length > length_max)
        return snk_fail(error, SNECK_INVALID, 0, "%s is longer than %zu bytes: use a shorter one", what, length_max);
    const char *start = text;
    for (const char *at = start; *at != '\0';) {
        uint32_t character = 0;
        size_t bytes = snk_utf8_read(at, &character);
        if (bytes == 0)
            return snk_fail(error, SNECK_INVALID, 0, "%s is not UTF-8 at byte %zu", what, (size_t)(at - start));
        if (is_control(character))
            return snk_fail(error, SNECK_INVALID, 0,
                            "%s has a control character at byte %zu: leave it out, or encode it", what,
                            (size_t)(at - start));
        at += bytes;
    }
    return snk_ok(error);
}

sneck_status snk_name_check(const char *name, sneck_error *error)
{
    return snk_text_check(name, "the lock's name", 1, SNK_NAME_LENGTH_MAX, error);
}

void snk_name_class(const char *name, char label[SNK_CLASS_LABEL_SIZE])
{
    char beginning[SNK_NAME_LENGTH_MAX + 1];
    size_t length = strcspn(name, "/");
    bool is_name = snk_name_check(name, NULL) == SNECK_OK;
    if (is_name)
        memcpy(beginning, name, length);
    beginning[is_name ? length : 0] = '\0';
    (void)snk_copy_text(label, SNK_CLASS_LABEL_SIZE, is_name ? beginning : "other");
}
