/* The connector's LZF and Blosc as filter classes, so that HDF5 writes and reads with them what tests compare. */
#ifndef FILTER_CLASSES_H
#define FILTER_CLASSES_H

/* Where the library lacks them: a plugin that somebody has installed goes first. */
void register_lzf_and_blosc(void);

#endif
