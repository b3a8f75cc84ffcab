#include "base/meters.h"

const struct tfh_meter_spec tfh_meters[TFH_METER_COUNT] = {
#define METER(id, number, kind, name, unit, scale, name2, unit2, scale2)                           \
	{number, TFH_METER_##kind, {{name, unit, scale}, {name2, unit2, scale2}}},
#include "base/meters.def"
#undef METER
};
