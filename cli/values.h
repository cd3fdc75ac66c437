/* Datatypes and values as text, for people. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "common.h"

/* "float64", "string[8]", "compound of 3". free() it. */
char *cli_type_name(hid_t type);
/* "dataset of float64 (10, 20)", "group", "named type int32". Of an open object; free() it. */
char *cli_object_name(hid_t object);
/* One value of TYPE, as it is in memory; free() it. Numbers have as many digits as tell them from any other of their type;
 * texts stand in quotes, control characters as \n, \x1b. All of it, however long. FILE: where references are from. */
char *cli_value_text(hid_t file, hid_t type, const void *value);
/* A floating-point number that is kept in SIZE bytes. free() it. */
char *cli_float_text(size_t size, long double value);
/* COUNT of them, in brackets where there is not exactly one. */
char *cli_values_text(hid_t file, hid_t type, uint64_t count, const void *values);

#endif
