/* The writers of the formats (export/formats.def); see struct tfh_format. */
#ifndef TFH_EXPORT_WRITERS_H
#define TFH_EXPORT_WRITERS_H

#include "export/export.h"

#define FORMAT(name, blanks, suffix, by_rank, help)                                                \
	int tfh_write_##name(const struct tfh_export *x, FILE *out, struct tfh_err *err);
#include "export/formats.def"
#undef FORMAT

/* csv_file.c: the table; `plain`: for programs, with the parts of steps. */
int tfh_csv_table(const struct tfh_export *x, FILE *out, bool plain, struct tfh_err *err);

#endif
