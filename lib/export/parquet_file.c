/* The table of csv_file.c as Parquet. The Arrow library writes it, from Python
 * (lib/python/tfhook/parquet.py), because most systems have no Arrow library for C. */
#include "export/writers.h"

static int write_rows(void *arg, FILE *in, struct tfh_err *err)
{
	return tfh_csv_table(arg, in, true, err);
}

int tfh_write_parquet(const struct tfh_export *x, FILE *out, struct tfh_err *err)
{
	return x->through("tfhook.parquet", "tfhook,pyarrow", "'pyarrow>=14'", out, write_rows,
			  (void *)x, err);
}
