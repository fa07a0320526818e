/* calibrate.h - measures what the hooks cost in this process (EVPROF_CALIBRATE=1), for evprof report --calibrate. */
#ifndef PRELOAD_CALIBRATE_H
#define PRELOAD_CALIBRATE_H

/*
 * Schedules the measurement in the main thread, once Python runs; with EVPROF_BUDGET also that of budget_event_ns,
 * which takes some ms. After the hooks are set. GIL held.
 */
void calibrate_soon(void);

#endif
