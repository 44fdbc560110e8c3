#include "store/grip.h"

#include "base/bug.h"

const char *snk_mode_word(snk_mode mode)
{
    static const char *const words[] = {
        [SNK_MODE_EXCLUSIVE] = "exclusive", [SNK_MODE_SHARED] = "shared", [SNK_MODE_PERMIT] = "permit",
        [SNK_MODE_TAKE] = "take",           [SNK_MODE_PASS] = "pass",
    };
    return words[mode];
}

void snk_crowd_add(snk_crowd *crowd, snk_mode mode, uint32_t units)
{
    crowd->holders++;
    if (mode == SNK_MODE_SHARED)
        crowd->sharing++;
    if (mode == SNK_MODE_PERMIT) {
        crowd->permits++;
        crowd->used += units;
    }
}

bool snk_grip_waits_for_itself(const snk_grip *grip, unsigned reads, unsigned writes)
{
    return grip->mode == SNK_MODE_EXCLUSIVE && reads > 0 && writes == 0 && !SNK_BUGGY(151);
}

bool snk_crowd_allows(const snk_crowd *crowd, const snk_grip *grip, bool stands_beside)
{
    int64_t least = grip->units > 0 ? grip->units : 1;
    uint32_t in_the_way = stands_beside ? crowd->holders - 1 : crowd->holders;
    switch (grip->mode) {
    case SNK_MODE_EXCLUSIVE:
        return in_the_way == 0 || (SNK_BUGGY(71) && in_the_way == crowd->sharing);
    case SNK_MODE_SHARED:
        return in_the_way == crowd->sharing || SNK_BUGGY(70);
    case SNK_MODE_PERMIT:
        if (SNK_BUGGY(72))
            least = 1;
        return in_the_way == crowd->permits && crowd->used + least <= crowd->count;
    case SNK_MODE_TAKE:
        return least <= crowd->count;
    case SNK_MODE_PASS:
        return crowd->count == 0 || (SNK_BUGGY(90) && crowd->count == 1);
    }
    return false;
}

const char *snk_object_mark(snk_object object)
{
    static const char *const marks[] = {
        [SNK_OBJECT_LOCK] = "",
        [SNK_OBJECT_LATCH] = "\001",
        [SNK_OBJECT_CONDITION] = "\002",
    };
    return marks[object];
}

snk_object snk_object_of_mark(char first)
{
    if (first == '\001')
        return SNK_OBJECT_LATCH;
    return first == '\002' ? SNK_OBJECT_CONDITION : SNK_OBJECT_LOCK;
}
