/* The cause within a class. */
#include "judge/copy_causes.h"
#include "judge/verdict/classify.h"

/* The small and the larger copies of a cause, and the number of small copies of any cause. */
struct copies {
	uint64_t small;
	int64_t small_ns, large_ns;
};

/* Counted by calls. */
static struct copies called_copies(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	struct copies c = {0};

	for (size_t i = 0; i < accounts->copy.n; i++) {
		const struct tfh_copy_use *u = &accounts->copy.v[i];
		bool mine = tfh_copy_cause(u->dir, u->pageable) == cause;
		c.small += u->small;
		c.small_ns += mine ? u->small_ns : 0;
		c.large_ns += mine ? u->ns - u->small_ns : 0;
	}
	return c;
}

/* Counted by device ops: one call may submit a batch of copies (cuMemcpyBatchAsync) or a graph. */
static struct copies done_copies(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	struct copies c = {0};

	for (unsigned dir = 0; accounts->device && dir < TFH_ACCOUNT_DIRS; dir++)
		for (int pageable = 0; pageable < 2; pageable++) {
			bool mine = tfh_copy_cause(dir, pageable) == cause;
			int64_t large = accounts->device->copied[dir][pageable].large_ns;
			c.small += accounts->device->copied[dir][pageable].small;
			c.small_ns += mine ? accounts->device->copied[dir][pageable].ns - large : 0;
			c.large_ns += mine ? large : 0;
		}
	return c;
}

/* The cause is many small copies, whatever their direction, if there are very many of them and
 * those of the cause that blocks most cost more than its larger ones. */
static enum tfh_cause transfer_cause(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	struct copies called = called_copies(accounts, cause), done = done_copies(accounts, cause);
	uint64_t small = called.small > done.small ? called.small : done.small;
	int64_t ns = called.small_ns > done.small_ns ? called.small_ns : done.small_ns;
	int64_t large = called.large_ns > done.large_ns ? called.large_ns : done.large_ns;
	bool many =
		accounts->train_steps && small >= TFH_VERDICT_SMALL_COPIES * accounts->train_steps;

	return TFH_DETECT_SMALL_COPIES && many && ns > large &&
			       (double)ns > TFH_VERDICT_SMALL_SHARE * (double)accounts->train_ns
		       ? TFH_CAUSE_TRANSFER_SMALL_COPIES
		       : cause;
}

enum tfh_cause tfh_plain_computing(const struct tfh_facts *facts)
{
	return facts->cpu_only ? TFH_CAUSE_COMPUTE_CPU : TFH_CAUSE_COMPUTE_DENSE;
}

enum tfh_cause tfh_cause_of(const struct tfh_accounts *accounts, enum tfh_class cls)
{
	int64_t own[TFH_CAUSE_COUNT];

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		own[c] = accounts->cause_ns[c] - (int64_t)accounts->slowed_ns[c];
	own[TFH_CAUSE_HOST_CONTENTION] = 0; /* tfh_prefer_contention() */
	enum tfh_cause cause = tfh_largest_cause(own, cls);

	if (cls == TFH_CLASS_TRANSFER_BOUND)
		return transfer_cause(accounts, cause);
	if (cls != TFH_CLASS_COMPUTE_BOUND)
		return cause;
	if ((double)accounts->cause_ns[TFH_CAUSE_COMPUTE_CONTENTION] >=
	    (1 - TFH_ACCOUNT_COMPUTE_SHARE) * (double)accounts->train_ns)
		return TFH_CAUSE_COMPUTE_CONTENTION;
	if (tfh_tier(accounts) != 'C')
		return tfh_compute_cause(accounts->device);
	return tfh_plain_computing(accounts->facts);
}
