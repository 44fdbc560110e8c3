#include "base/duration.h"

#include <stddef.h>
#include <string.h>

#include "base/limits.h"

typedef struct unit {
    const char *name;
    int64_t ms;
} unit;

static int64_t unit_ms(const char *name)
{
    static const unit units[] = { { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].ms;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A decimal number in billionths, as far as nine places say; what comes after them only rounds up. */
typedef struct decimal {
    int64_t whole;
    int64_t billionths;
    bool more;
} decimal;

/* Returns where the number ends, or NULL when there is none or it does not fit. */
static const char *parse_decimal(const char *text, decimal *out)
{
    *out = (decimal){ 0 };
    const char *at = text;
    for (; is_digit(*at); at++) {
        if (out->whole > INT64_MAX / 10 - 1)
            return NULL;
        out->whole = out->whole * 10 + (*at - '0');
    }
    bool found = at > text;
    if (*at != '.')
        return found ? at : NULL;
    at++;
    if (!is_digit(*at))
        return NULL;
    int64_t place = SNK_NS_PER_S / 10;
    for (; is_digit(*at); at++) {
        out->billionths += (*at - '0') * place;
        out->more = out->more || (place == 0 && *at != '0');
        place /= 10;
    }
    return at;
}

bool snk_duration_parse_ms(const char *text, int64_t *ms_out)
{
    decimal number;
    const char *end = text == NULL ? NULL : parse_decimal(text, &number);
    if (end == NULL)
        return false;
    int64_t factor = unit_ms(end);
    if (factor == 0 || number.whole > INT64_MAX / 2 / factor)
        return false;
    int64_t part = number.billionths * factor; /* at most 10^9 * 3.6 * 10^6 */
    int64_t rest = part % SNK_NS_PER_S != 0 || number.more ? 1 : 0;
    *ms_out = number.whole * factor + part / SNK_NS_PER_S + rest;
    return true;
}
