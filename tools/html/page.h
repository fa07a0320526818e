/*
 * page.h - the page of the HTML report around its data: tools/html/report.html with report.css and report.js in
 * it.
 *
 * The three files become part of the program when it is built (page.c). Used by export_html.c.
 */
#ifndef EVPROF_TOOLS_HTML_PAGE_H
#define EVPROF_TOOLS_HTML_PAGE_H

#include "util/output.h"

/* Everything before the data, and everything behind it. */
void html_page_begin(struct output *output);
void html_page_end(struct output *output);

#endif
