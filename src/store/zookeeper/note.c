#include "store/zookeeper/note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void snk_zk_note_write(const snk_zk_note *note, char text[SNK_ZK_NOTE_SIZE])
{
    char claim[SNK_ID_TEXT_SIZE];
    snk_id_to_hex(&note->claim, claim);
    (void)snprintf(
        text, SNK_ZK_NOTE_SIZE,
        "claim=%s\nowner=%s\nhost=%s\npid=%lld\nlease=%lld\nheld=%lld\ntoken=%llu\nunits=%u\nfair=%d\nwhy=%s\n", claim,
        note->owner, note->host, (long long)note->pid, (long long)note->lease_ms, (long long)note->held_ms,
        (unsigned long long)note->token, note->units, note->fair, note->why);
}

static bool is_key(const char *line, const char *key, const char **value_out)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || line[length] != '=')
        return false;
    *value_out = line + length + 1;
    return true;
}

static void read_line(const char *line, snk_zk_note *note)
{
    const char *value = NULL;
    if (is_key(line, "claim", &value))
        (void)snk_id_from_hex(&note->claim, value);
    else if (is_key(line, "owner", &value))
        (void)snk_copy_text(note->owner, sizeof note->owner, value);
    else if (is_key(line, "host", &value))
        (void)snk_copy_text(note->host, sizeof note->host, value);
    else if (is_key(line, "why", &value))
        (void)snk_copy_text(note->why, sizeof note->why, value);
    else if (is_key(line, "pid", &value))
        note->pid = strtoll(value, NULL, 10);
    else if (is_key(line, "lease", &value))
        note->lease_ms = strtoll(value, NULL, 10);
    else if (is_key(line, "held", &value))
        note->held_ms = strtoll(value, NULL, 10);
    else if (is_key(line, "token", &value))
        note->token = strtoull(value, NULL, 10);
    else if (is_key(line, "units", &value))
        note->units = (uint32_t)strtoul(value, NULL, 10);
    else if (is_key(line, "fair", &value))
        note->fair = *value == '1';
}

void snk_zk_note_read(const char *text, snk_zk_note *note_out)
{
    *note_out = (snk_zk_note){ .pid = 0 };
    char line[SNK_ZK_NOTE_SIZE];
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        size_t copied = length < sizeof line ? length : sizeof line - 1;
        memcpy(line, text, copied);
        line[copied] = '\0';
        read_line(line, note_out);
        text += length + (text[length] == '\n');
    }
}
