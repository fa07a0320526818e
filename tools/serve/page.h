/*
 * page.h - the page of evprof serve: the files of tools/serve/page/, and text for HTML.
 */
#ifndef EVPROF_TOOLS_SERVE_PAGE_H
#define EVPROF_TOOLS_SERVE_PAGE_H

#include "serve/route.h"
#include "util/output.h"

/* Of SERVE_PAGE, SERVE_SCRIPT or SERVE_STYLE. */
struct text serve_page(enum serve_place place);

/* Text without anything that HTML takes for markup, in an element. */
void serve_put_html(struct output *output, struct text text);

#endif
