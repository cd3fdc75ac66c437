/* Where the array of a dataset has its pools of pieces from. */
#ifndef COW_HISTORY_PIECES_H
#define COW_HISTORY_PIECES_H

#include "history/history.h"

/* For an array whose type, grid and pool are known. */
void cow_pieces_offer(cow_dataset *dataset);

#endif
