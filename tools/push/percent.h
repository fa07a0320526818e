/*
 * percent.h - lists of key=value with commas and percent-encoded values, as W3C Baggage and the variables of
 * OpenTelemetry have them.
 */
#ifndef EVPROF_TOOLS_PUSH_PERCENT_H
#define EVPROF_TOOLS_PUSH_PERCENT_H

#include <stdbool.h>

/* Takes the next pair off the list, which it changes. False: none is left. Anything else is passed over. */
bool percent_next(char **list, char **key, char **value);

#endif
