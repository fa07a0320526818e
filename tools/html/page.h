/*
 * page.h - the page of the HTML report without its data: tools/html/report.html with report.css and the
 * parts of its script in tools/html/script/.
 *
 * The build makes these files part of the program (page.c). Used by export_html.c.
 */
#ifndef EVPROF_TOOLS_HTML_PAGE_H
#define EVPROF_TOOLS_HTML_PAGE_H

#include "util/output.h"

/* Write the page before the data, and after it. */
void html_page_begin(struct output *output);
void html_page_end(struct output *output);

#endif
