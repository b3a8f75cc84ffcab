/* Meters of the machine: the table of meters.def. */
#ifndef TFH_BASE_METERS_H
#define TFH_BASE_METERS_H

#include <stdint.h>

#define TFH_METER_DEVICES 16 /* ordinals that readers know */
#define TFH_METER_OF_DEVICE                                                                        \
	64 /* entries from here on belong to a device, whose ordinal is in the upper half of tid */

enum tfh_meter_kind { TFH_METER_RATE, TFH_METER_LEVEL };

enum tfh_meter {
#define METER(id, ...) TFH_METER_##id,
#include "base/meters.def"
#undef METER
	TFH_METER_COUNT
};

struct tfh_meter_spec {
	uint32_t number;
	enum tfh_meter_kind kind;
	struct {
		const char *name, *unit;
		double scale;
	} value[2];
};

extern const struct tfh_meter_spec tfh_meters[TFH_METER_COUNT];

#endif
