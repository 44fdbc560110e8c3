#include "store/zookeeper/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char *const stems[] = {
    [SNK_ZK_LOCK] = "lock-",     [SNK_ZK_WRITE] = "write-", [SNK_ZK_READ] = "read-",
    [SNK_ZK_PERMIT] = "permit-", [SNK_ZK_TAKE] = "take-",
};

const char *snk_zk_mark(snk_object object)
{
    static const char *const marks[] = {
        [SNK_OBJECT_LOCK] = "",
        [SNK_OBJECT_LATCH] = "%latch:",
        [SNK_OBJECT_CONDITION] = "%condition:",
    };
    return marks[object];
}

/* ZooKeeper takes no character of these ranges; names have no control characters. */
static bool is_refused(const unsigned char *at)
{
    bool is_private = at[0] == 0xEE || (at[0] == 0xEF && at[1] < 0xA4); /* U+E000 to U+F8FF */
    bool is_special = at[0] == 0xEF && at[1] == 0xBF && at[2] >= 0xB0;  /* U+FFF0 to U+FFFF */
    return is_private || is_special;
}

/* Appends text, cut at the size. */
static size_t append(char *to, size_t length, const char *text)
{
    return length + snk_copy_text(to + length, SNK_ZK_PATH_SIZE - length, text);
}

static size_t append_escaped(char *to, size_t length, const char *name, bool is_first)
{
    const unsigned char *at = (const unsigned char *)name;
    size_t refused = 0; /* bytes of a refused character that are left */
    for (; *at != '\0' && length + 4 < SNK_ZK_PATH_SIZE; at++) {
        if (refused == 0 && is_refused(at))
            refused = 3;
        if (refused > 0 || *at == '%' || *at == '/' || (*at == '.' && is_first)) {
            (void)snprintf(to + length, 4, "%%%02X", *at);
            length += 3;
        } else {
            to[length++] = (char)*at;
        }
        refused -= refused > 0;
        is_first = false;
    }
    to[length] = '\0';
    return length;
}

static bool is_default(const char *prefix)
{
    return strcmp(prefix, SNK_PREFIX_DEFAULT) == 0;
}

void snk_zk_folder(const char *root, const char *prefix, const char *mark, const char *name, snk_zk_path path)
{
    size_t length = append(path, 0, root);
    length = append(path, length, "/");
    length = append(path, length, mark);
    bool has_prefix = !is_default(prefix) && *prefix != '\0';
    if (has_prefix)
        length = append_escaped(path, length, prefix, true);
    (void)append_escaped(path, length, name, !has_prefix);
}

void snk_zk_below(const char *folder, const char *name, snk_zk_path path)
{
    size_t length = append(path, 0, folder);
    length = append(path, length, "/");
    (void)append(path, length, name);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool snk_zk_unescape(const char *prefix, const char *folder, char name[SNK_NAME_LENGTH_MAX + 1])
{
    char full[SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 1];
    size_t length = 0;
    for (const char *at = folder; *at != '\0'; at++) {
        if (length + 1 >= sizeof full)
            return false;
        if (*at != '%') {
            full[length++] = *at;
            continue;
        }
        int high = digit_of(at[1]);
        int low = high < 0 ? -1 : digit_of(at[2]);
        if (low < 0)
            return false; /* a mark: no lock */
        full[length++] = (char)(high * 16 + low);
        at += 2;
    }
    full[length] = '\0';
    size_t skip = is_default(prefix) ? 0 : strlen(prefix);
    if (length <= skip || length - skip > SNK_NAME_LENGTH_MAX || strncmp(full, prefix, skip) != 0)
        return false;
    memcpy(name, full + skip, length - skip + 1);
    return true;
}

const char *snk_zk_stem(snk_mode mode)
{
    switch (mode) {
    case SNK_MODE_SHARED:
        return stems[SNK_ZK_READ];
    case SNK_MODE_PERMIT:
        return stems[SNK_ZK_PERMIT];
    case SNK_MODE_TAKE:
        return stems[SNK_ZK_TAKE];
    case SNK_MODE_EXCLUSIVE:
    case SNK_MODE_PASS:
        break;
    }
    return stems[SNK_ZK_LOCK];
}

bool snk_zk_node_parse(const char *name, snk_zk_node *node_out)
{
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        size_t length = strlen(stems[i]);
        if (strncmp(name, stems[i], length) != 0)
            continue;
        char *end = NULL;
        long number = strtol(name + length, &end, 10); /* after 2147483647 comes -2147483648 */
        if (end == name + length || *end != '\0' || strlen(name) >= SNK_ZK_NODE_SIZE)
            return false;
        node_out->kind = (snk_zk_kind)i;
        node_out->number = (int32_t)number;
        (void)snk_copy_text(node_out->name, sizeof node_out->name, name);
        return true;
    }
    return false;
}

int snk_zk_node_order(const snk_zk_node *a, const snk_zk_node *b)
{
    int32_t distance = (int32_t)((uint32_t)a->number - (uint32_t)b->number);
    if (distance != 0)
        return distance < 0 ? -1 : 1;
    return (int)a->kind - (int)b->kind;
}
