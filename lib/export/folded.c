/* Folded stacks of Python lines for flame graphs, the same as those of `tfhook report --folded`. */
#include <errno.h>

#include "export/writers.h"
#include "report/report.h"

int tfh_write_folded(const struct tfh_export *x, FILE *out, struct tfh_err *err)
{
	const struct tfh_findings *found = &x->result->found;

	if (x->part)
		return tfh_err_set(err, -EINVAL,
				   "folded stacks are of all judged steps: leave --steps out");
	if (x->hidden)
		return tfh_err_set(err, -EINVAL,
				   "folded stacks consist of names: leave --anonymize out");
	if (!found->n_node && !found->workers.n_node)
		return tfh_err_set(err, -ENODATA, "no line of Python was seen%s%s",
				   found->no_python ? ": " : "",
				   found->no_python ? found->no_python : "");
	tfh_report_where_folded(out, x->result);
	return ferror(out) ? -EIO : 0;
}
