/* The kinds of kernels that the computing consists of, and advice about those that take much time. */
#include <math.h>

#include "report/words/words.h"

static const struct {
	enum tfh_kernel_family family;
	const char *finding, *todo;
} remedies[] = {
	{TFH_FAMILY_MATMUL_PLAIN, "matrix products run without tensor cores",
	 "compute in bfloat16 or float16 (autocast, mixed_float16), or allow TF32 where the device has it: torch.set_float32_matmul_precision(\"high\")"},
	{TFH_FAMILY_CONVOLUTION_PLAIN, "convolutions run without tensor cores",
	 "compute in bfloat16 or float16 (autocast, mixed_float16), with channels last: memory_format=torch.channels_last, data_format=\"channels_last\""},
	{TFH_FAMILY_LAYOUT, "much of the computing changes layouts",
	 "keep one layout: for convolutions memory_format=torch.channels_last or data_format=\"channels_last\"; views in place of transposed copies"},
	{TFH_FAMILY_COPY, "much of the computing copies tensors or converts their types",
	 "keep weights in the type that is computed with, and avoid contiguous() and casts within the step; compilers (torch.compile, XLA) fuse what is left"},
	{TFH_FAMILY_ELEMENTWISE,
	 "much of the computing is elementwise operations, which wait for memory",
	 "let a compiler fuse them (torch.compile, jit_compile=True), or use fused layers"},
	{TFH_FAMILY_REDUCTION, "much of the computing is reductions, which wait for memory",
	 "let a compiler fuse them with what comes before (torch.compile, jit_compile=True)"},
	{TFH_FAMILY_NORMALISATION, "much of the computing is normalisation, which waits for memory",
	 "use fused layers, or let a compiler fuse them; batch normalisation is faster with channels last and mixed precision"},
	{TFH_FAMILY_OPTIMIZER, "much of the computing is the optimizer",
	 "use its fused form (fused=True in torch.optim, apex), or accumulate gradients over several batches"},
	{TFH_FAMILY_EMBEDDING, "much of the computing gathers and scatters rows",
	 "look up several tables at once (fbgemm), and use sparse gradients where tables are large"},
};

static const char *todo_of(enum tfh_kernel_family family, const char **finding)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (remedies[i].family == family) {
			*finding = remedies[i].finding;
			return remedies[i].todo;
		}
	return NULL;
}

void tfh_explain_families(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const char *list = "";
	uint32_t n = 0, advised = 0;

	for (uint32_t i = 0; i < r->n_families && n < TFH_REPORT_FAMILIES; i++) {
		const struct tfh_family_time *f = &r->families[i];
		if (f->share_of_busy < TFH_REPORT_FAMILY_SHARE)
			break;
		list = tfh_phrase(w, n ? "%s, %.0f %% %s" : "%s%.0f %% of the computing is %s",
				  list, 100 * f->share_of_busy, tfh_family_words(f->family));
		n++;
	}
	if (!n || (n == 1 && r->families[0].family == TFH_FAMILY_OTHER))
		return;
	tfh_evidence(w, TFH_TELLS_WHY, list);
	for (uint32_t i = 0; i < n && advised < TFH_REPORT_FAMILIES_ADVISED; i++) {
		const struct tfh_family_time *f = &r->families[i];
		const char *finding = NULL, *todo = todo_of(f->family, &finding);
		if (!todo || f->share_of_busy < TFH_REPORT_FAMILY_ADVICE)
			continue;
		tfh_advise(w, finding,
			   tfh_phrase(w, "%s: %.0f %% of the computing, %s per step",
				      tfh_family_words(f->family), 100 * f->share_of_busy,
				      tfh_phrase_time(w, f->s_per_step)),
			   todo, TFH_REMOVE_NONE);
		advised++;
	}
}
