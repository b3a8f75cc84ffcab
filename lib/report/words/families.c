/* The kinds of kernels that the computing consists of, and advice about those that take much
 * time. */

#include "report/words/remedy.h"
#include "report/words/words.h"

/* What can be done, by framework: if it is unknown, in any other one, in PyTorch, TensorFlow, JAX.
 * Where only the first is given, it holds for all. */
static const struct {
	enum tfh_kernel_family family;
	const char *finding, *todo[TFH_FRAMEWORKS];
} remedies[] = {
	{TFH_FAMILY_MATMUL_PLAIN,
	 "matrix products run without tensor cores",
	 {"compute in bfloat16 or float16 (autocast, mixed_float16), or allow TF32 where the "
	  "device has it: torch.set_float32_matmul_precision(\"high\")",
	  "compute in bfloat16 or float16, or allow TF32 where the device has it",
	  "compute in bfloat16 or float16 (autocast), or allow TF32 where the device has it: "
	  "torch.set_float32_matmul_precision(\"high\")",
	  "compute in bfloat16 or float16 (mixed_float16), or allow TF32 where the device has it",
	  "compute in bfloat16, or allow TF32 where the device has it "
	  "(jax_default_matmul_precision)"}},
	{TFH_FAMILY_CONVOLUTION_PLAIN,
	 "convolutions run without tensor cores",
	 {"compute in bfloat16 or float16 (autocast, mixed_float16), with channels last: "
	  "memory_format=torch.channels_last, data_format=\"channels_last\"",
	  "compute in bfloat16 or float16, with channels last",
	  "compute in bfloat16 or float16 (autocast), with memory_format=torch.channels_last",
	  "compute in bfloat16 or float16 (mixed_float16), with data_format=\"channels_last\"",
	  "compute in bfloat16, with channels last (dimension_numbers)"}},
	{TFH_FAMILY_LAYOUT,
	 "much of the computing changes layouts",
	 {"keep one layout: for convolutions memory_format=torch.channels_last or "
	  "data_format=\"channels_last\"; views in place of transposed copies",
	  "keep one layout; views in place of transposed copies",
	  "keep one layout: for convolutions memory_format=torch.channels_last; views in place of "
	  "transposed copies",
	  "keep one layout: for convolutions data_format=\"channels_last\"; fewer transposes",
	  "keep one layout: the same dimension_numbers in all convolutions; fewer transposes"}},
	{TFH_FAMILY_COPY,
	 "much of the computing copies tensors or converts their types",
	 {"keep weights in the type that is computed with, and avoid contiguous() and casts within "
	  "the step; compilers (torch.compile, XLA) fuse what is left",
	  "keep data in the type that is computed with, and avoid copies and casts within the step",
	  "keep weights in the type that is computed with, and avoid contiguous() and casts within "
	  "the step; torch.compile fuses what is left",
	  "keep weights in the type that is computed with, and avoid casts within the step; XLA "
	  "(jit_compile=True) fuses what is left",
	  "keep weights in the type that is computed with, and avoid casts within the step; one "
	  "jax.jit around the step fuses what is left"}},
	{TFH_FAMILY_ELEMENTWISE,
	 "much of the computing is elementwise operations, which wait for memory",
	 {"let a compiler fuse them (torch.compile, jit_compile=True), or use fused layers",
	  "compute several of them in one kernel, so that what is between them stays out of memory",
	  "let a compiler fuse them (torch.compile), or use fused layers",
	  "let XLA fuse them (jit_compile=True), or use fused layers",
	  "put them under one jax.jit, so that XLA fuses them"}},
	{TFH_FAMILY_REDUCTION,
	 "much of the computing is reductions, which wait for memory",
	 {"let a compiler fuse them with what comes before (torch.compile, jit_compile=True)",
	  "compute them in the kernels that make what they reduce",
	  "let a compiler fuse them with what comes before (torch.compile)",
	  "let XLA fuse them with what comes before (jit_compile=True)",
	  "put them and what comes before under one jax.jit, so that XLA fuses them"}},
	{TFH_FAMILY_NORMALISATION,
	 "much of the computing is normalisation, which waits for memory",
	 {"use fused layers, or let a compiler fuse them; batch normalisation is faster with "
	  "channels last and mixed precision"}},
	{TFH_FAMILY_OPTIMIZER,
	 "much of the computing is the optimizer",
	 {"use its fused form (fused=True in torch.optim, apex), or accumulate gradients over "
	  "several batches",
	  "update all weights in one kernel, or accumulate gradients over several batches",
	  "use its fused form (fused=True in torch.optim, apex), or accumulate gradients over "
	  "several batches",
	  "compile the training step (jit_compile=True), or accumulate gradients over several "
	  "batches",
	  "put the update under the step's jax.jit, or accumulate gradients over several batches"}},
	{TFH_FAMILY_EMBEDDING,
	 "much of the computing gathers and scatters rows",
	 {"look up several tables at once (fbgemm), and use sparse gradients where tables are "
	  "large",
	  "look up several tables at once",
	  "look up several tables at once (fbgemm), and use sparse gradients where tables are "
	  "large",
	  "look up several tables at once, and use sparse gradients where tables are large",
	  "look up several tables at once"}},
};

const char *tfh_family_todo(enum tfh_kernel_family family, enum tfh_framework in,
			    const char **finding)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
		if (remedies[i].family != family)
			continue;
		*finding = remedies[i].finding;
		return remedies[i].todo[remedies[i].todo[in] ? in : TFH_FRAMEWORK_UNKNOWN];
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
		const char *finding = NULL,
			   *todo = tfh_family_todo(f->family, tfh_framework(r), &finding);
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
