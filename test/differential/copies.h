/* Other files that the program copies from and to. */
#ifndef DIFFERENTIAL_COPIES_H
#define DIFFERENTIAL_COPIES_H

/* They are removed; what is copied next makes them anew. */
void unlink_outside(void);
/* When all is done: how many there were, and with how many combinations of flags. */
void tell_copies(void);

#endif
