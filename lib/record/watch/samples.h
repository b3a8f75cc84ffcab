/* Once a second, more often at first: how much of the machine the job got. All on the flusher. */
#ifndef TFH_RECORD_WATCH_SAMPLES_H
#define TFH_RECORD_WATCH_SAMPLES_H

#include <stdint.h>

struct tft_sample_thread;
struct tft_writer;

/* sample.c: takes a sample, which is written with the next chunk. */
void tfh_sample(void);
/* Returns 0 or -errno (the samples then stay). */
int tfh_sample_write(struct tft_writer *w);
void tfh_sample_forget(void);

/* machine.c: readings of the machine's meters, at most TFH_METER_COUNT, and page faults and context
 * switches of `n` threads, two entries each. Returns 0 between two readings. */
uint32_t tfh_machine_read(const struct tft_sample_thread *threads, uint32_t n,
			  struct tft_sample_thread *out);

#endif
