#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sneck_status snk_fail(sneck_error *error, sneck_status status, int cause, const char *format, ...)
{
    if (error == NULL)
        return status;
    error->status = status;
    error->cause = cause;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    if (length < 0)
        error->message[0] = '\0';
    return status;
}

sneck_status snk_ok(sneck_error *error)
{
    if (error != NULL) {
        error->status = SNECK_OK;
        error->cause = 0;
        error->message[0] = '\0';
    }
    return SNECK_OK;
}

sneck_status snk_fail_as(sneck_error *error, const sneck_error *from)
{
    if (error != NULL)
        *error = *from;
    return from->status;
}

const char *snk_errno_text(int cause)
{
    const char *text = strerrordesc_np(cause);
    return text != NULL ? text : "unknown error";
}

size_t snk_copy_text(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    if (length >= size) {
        length = size - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xC0U) == 0x80U)
            length--;
    }
    memcpy(to, from, length);
    to[length] = '\0';
    return length;
}

const char *sneck_status_name(sneck_status status)
{
    static const char *const names[] = {
        [SNECK_OK] = "SNECK_OK",
        [SNECK_BUSY] = "SNECK_BUSY",
        [SNECK_TIMEOUT] = "SNECK_TIMEOUT",
        [SNECK_CANCELED] = "SNECK_CANCELED",
        [SNECK_LOST] = "SNECK_LOST",
        [SNECK_NOT_OWNER] = "SNECK_NOT_OWNER",
        [SNECK_CONFLICT] = "SNECK_CONFLICT",
        [SNECK_UNAVAILABLE] = "SNECK_UNAVAILABLE",
        [SNECK_UNKNOWN] = "SNECK_UNKNOWN",
        [SNECK_DENIED] = "SNECK_DENIED",
        [SNECK_INVALID] = "SNECK_INVALID",
        [SNECK_UNSUPPORTED] = "SNECK_UNSUPPORTED",
        [SNECK_LIMIT] = "SNECK_LIMIT",
        [SNECK_DEADLOCK] = "SNECK_DEADLOCK",
        [SNECK_NO_MEMORY] = "SNECK_NO_MEMORY",
    };
    size_t index = (size_t)status;
    return index < sizeof names / sizeof names[0] ? names[index] : "SNECK_?";
}

#define TEXT_OF(number) #number
#define DOTTED(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *sneck_version_string(void)
{
    return DOTTED(SNECK_VERSION_MAJOR, SNECK_VERSION_MINOR, SNECK_VERSION_PATCH);
}
