/*
 * Pseudonyms for what a run names (`tfhook export --anonymize`): kernels, ranges, threads, hosts,
 * programs. Equal names have equal pseudonyms within one export. Names of libraries' functions, and
 * those of ranges by which other tools recognise steps and batches, are public and stay.
 */
#ifndef TFH_EXPORT_PSEUDONYMS_H
#define TFH_EXPORT_PSEUDONYMS_H

enum tfh_named {
	TFH_NAMED_KERNEL,
	TFH_NAMED_RANGE,
	TFH_NAMED_CALL, /* its function, in another tool's trace perhaps a range of the program */
	TFH_NAMED_THREAD,
	TFH_NAMED_HOST,
	TFH_NAMED_PROGRAM,
	TFH_NAMED_KINDS
};

/* NULL: out of memory. */
struct tfh_pseudonyms *tfh_pseudonyms_new(void);
void tfh_pseudonyms_free(struct tfh_pseudonyms *p);

/* What stands for a name: the name itself if `p` is NULL, or if it is NULL, "" or public. Valid
 * until tfh_pseudonyms_free(). */
const char *tfh_pseudonym(struct tfh_pseudonyms *p, enum tfh_named kind, const char *name);

#endif
