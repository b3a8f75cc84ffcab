/* Settings, for hooks. */
#ifndef TFH_RECORD_PROCESS_SETTINGS_H
#define TFH_RECORD_PROCESS_SETTINGS_H

#include "base/options.h"

int64_t tfh_setting(enum tfh_option id);
const char *tfh_setting_text(enum tfh_option id);

#endif
