/* version.h - the release of all programs. Formats and protocols count their own versions. */
#ifndef EVPROF_VERSION_H
#define EVPROF_VERSION_H

#define EVPROF_VERSION "0.2"

#endif
