/* Commands whose work the Python package does. */
#ifndef TFH_CLI_PYTHON_START_H
#define TFH_CLI_PYTHON_START_H

#include "cli/cli.h"
#include "export/export.h"

/* Replaces this process by `python3 -m MODULE`, where every module of `needs` (names in Python,
 * separated by commas) is installed, with this command line: its flags, then its operands. Returns
 * an exit code with a message, which `remedy` ends, if it cannot. */
int tfh_python_start(const char *module, const char *needs, const char *remedy,
		     const struct tfh_command_line *args);
/* Stores the folder that has the package `tfhook`, for PYTHONPATH. False: it is not beside this
 * command; a wheel's environment has it. */
bool tfh_python_package(char path[4096]);
/* See tfh_export_through. */
tfh_export_through tfh_python_through;

#endif
