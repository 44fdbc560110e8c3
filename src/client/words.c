/* The names of events, causes and checks, for people, logs and metrics. */
#include "sneck.h"

const char *sneck_event_kind_name(sneck_event_kind kind)
{
    switch (kind) {
    case SNECK_EVENT_ACQUIRED:
        return "acquired";
    case SNECK_EVENT_RELEASED:
        return "released";
    case SNECK_EVENT_RENEWED:
        return "renewed";
    case SNECK_EVENT_RENEWAL_FAILED:
        return "renewal-failed";
    case SNECK_EVENT_LOST:
        return "lost";
    case SNECK_EVENT_AT_RISK:
        return "at-risk";
    case SNECK_EVENT_RECOVERED:
        return "recovered";
    case SNECK_EVENT_CONNECTION_DOWN:
        return "connection-down";
    case SNECK_EVENT_CONNECTION_UP:
        return "connection-up";
    case SNECK_EVENT_OWNER_DIED:
        return "owner-died";
    case SNECK_EVENT_STUCK:
        return "stuck";
    case SNECK_EVENT_DEADLOCK:
        return "deadlock";
    case SNECK_EVENT_BROKEN:
        return "broken";
    }
    return "?";
}

const char *sneck_check_kind_name(sneck_check_kind kind)
{
    switch (kind) {
    case SNECK_CHECK_RENEWAL:
        return "renewal";
    case SNECK_CHECK_STATE:
        return "state";
    case SNECK_CHECK_OWNER:
        return "owner";
    case SNECK_CHECK_CONNECTION:
        return "connection";
    case SNECK_CHECK_RECOVERY:
        return "recovery";
    }
    return "?";
}

const char *sneck_cause_name(sneck_cause cause)
{
    switch (cause) {
    case SNECK_CAUSE_NONE:
        return "";
    case SNECK_CAUSE_EXPIRED:
        return "expired";
    case SNECK_CAUSE_PAUSED:
        return "paused";
    case SNECK_CAUSE_GONE:
        return "gone";
    case SNECK_CAUSE_TAKEN:
        return "taken";
    case SNECK_CAUSE_GIVEN_UP:
        return "given-up";
    case SNECK_CAUSE_STUCK:
        return "stuck";
    case SNECK_CAUSE_OVERDUE:
        return "overdue";
    case SNECK_CAUSE_OWNER_DIED:
        return "owner-died";
    }
    return "?";
}
