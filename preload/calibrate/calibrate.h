/* calibrate.h - measures what the hooks cost in this process (EVPROF_CALIBRATE=1), for evprof report --calibrate. */
#ifndef PRELOAD_CALIBRATE_H
#define PRELOAD_CALIBRATE_H

/* Schedules the measurement in the main thread, once Python runs. After the hooks are set. GIL held. */
void calibrate_soon(void);

#endif
