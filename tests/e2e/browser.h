/*
 * browser.h - a headless Chromium that opens a page and answers questions about it, for test_html.c and test_serve.c.
 *
 * Speaks the DevTools protocol over a pipe (--remote-debugging-pipe): JSON objects with a zero byte behind each. A test
 * without a browser on its machine is skipped. Everything else that goes wrong fails the running test.
 */
#ifndef EVPROF_E2E_BROWSER_H
#define EVPROF_E2E_BROWSER_H

#include <jansson.h>

struct browser;

/* Starts one, with an empty profile in that directory. */
struct browser *browser_open(const char *directory);
void browser_close(struct browser *browser);
/* Opens a page of evprof; returns when its script has run. */
void browser_go(struct browser *browser, const char *url);
/* The same with a file. */
void browser_load(struct browser *browser, const char *path);
/* The value of a JavaScript expression, awaited. A borrowed reference, good until the next question. */
const json_t *browser_ask(struct browser *browser, const char *format, ...) __attribute__((format(printf, 2, 3)));
double browser_number(struct browser *browser, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A command of the protocol to the page, with parameters as JSON text. */
void browser_command(struct browser *browser, const char *method, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Uncaught exceptions, refused loads and messages to the console since the start; fails the test if there was one. */
void browser_expect_quiet(const struct browser *browser);

#endif
