/*
 * asset.h - files of the source as parts of the program. The assembler includes them, which works with gcc and clang;
 * the Makefile lists them as dependencies of the file that has them.
 *
 * ASSET("page", ASSET_FILE("tools/html/report.html")); defines the bytes between two symbols, ASSET_SYMBOL("page") and
 * ASSET_SYMBOL("page_end"), with a zero behind. Names are of the whole program.
 */
#ifndef EVPROF_TOOLS_UTIL_ASSET_H
#define EVPROF_TOOLS_UTIL_ASSET_H

#define ASSET(Name, Files)                                                                                             \
	__asm__(".pushsection .rodata\n"                                                                               \
		"evprof_asset_" Name ":\n" Files "evprof_asset_" Name "_end:\n"                                        \
		".byte 0\n"                                                                                            \
		".balign 8\n"                                                                                          \
		".popsection\n")
#define ASSET_FILE(Path) ".incbin \"" Path "\"\n"
#define ASSET_SYMBOL(Name) __asm__("evprof_asset_" Name)

#endif
