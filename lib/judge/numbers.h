/* Numbers that several phases share. */
#ifndef TFH_JUDGE_NUMBERS_H
#define TFH_JUDGE_NUMBERS_H

#define TFH_US 1000ll
#define TFH_MS 1000000ll
/* Calls at least so long are kept from the first look, so that the second needs to look back no
 * further (tfh_facts.long_ns): the first of these, doubled while there are many, up to the second.
 */
#define TFH_LONG_FIRST_NS TFH_MS
#define TFH_LONG_NS (100 * TFH_MS)
/* A pause between two calls below this is the price of calling, above it is the program's own
 * doing. XProf, HTA and peers use 50 us for a long launch. */
#define TFH_GAP_NS (50 * TFH_US)
/* What blocks less of the time than this holds nothing back. */
#define TFH_BLOCKING_SHARE 0.05
/* Cost of one recorded call in the job (bench/hook): for the overhead that the report states, and
 * as the part of each pause between two calls that is the recorder's. */
#define TFH_HOOK_NS 40
/* A launch that takes longer, with a deep queue behind it, waits for room in the queue. */
#define TFH_QUEUE_DEPTH 64
#define TFH_QUEUE_SLOW 8 /* of the last 64 launches */
/* Copies below it cost their calls, not their bytes. */
#define TFH_SMALL_COPY (64u << 10)
/* Above this share of the time without a processor though ready to run, the machine is busy with
 * something else, and little processor time is no proof of waiting. */
#define TFH_CROWDED_SHARE 0.03

#endif
